# Two commands on a fresh machine: `make demo` and `make test`. Both install what is missing and say so.

SWIFT ?= swift
RUN_PACKAGES = libcurl4-openssl-dev libssl-dev libnotify-dev libsqlite3-dev libtomlplusplus-dev nlohmann-json3-dev libexpat1-dev zlib1g-dev pkg-config
TEST_PACKAGES = dunst xvfb dbus nginx-light imagemagick faketime xdotool sqlite3 libglib2.0-bin python3 python3-dbusmock procps util-linux iproute2 libcairo2 fonts-dejavu-core libimage-exiftool-perl xdg-desktop-portal xdg-desktop-portal-gtk zsh fish man-db desktop-file-utils appstream
INTEROP_PACKAGES = nginx-light apache2-bin lighttpd lighttpd-mod-webdav php-cli php-sabre-dav python3-venv curl
BENCHMARK_PACKAGES = jq libnotify-bin curl rclone libnginx-mod-http-dav-ext
PHOTO_PACKAGES = ffmpeg libheif-examples webp libjxl-tools libavif-bin python3-pil imagemagick libimage-exiftool-perl
COMPARE_PACKAGES = cron anacron systemd libnotify-bin curl manpages
# How much of each proof; CI takes less.
KILLS ?= 300
TRANSFER_KILLS ?= 150
RESTARTS ?= 1000
SEEDS ?= 10000
MONTHS ?= 300
WHYS ?= 10000
PHOTOS ?= 10000
FUZZ_SECONDS ?= 60
# What is drawn by lot is drawn by this: the same seed draws the same again.
ifndef SEED
SEED := $(shell od -An -N3 -tu4 /dev/urandom | tr -d ' ')
endif
export SEED
# Of `make simulate`.
CONFIGURATION ?= release
FUZZERS = fuzz-wire fuzz-resume fuzz-ledger fuzz-configuration fuzz-photo fuzz-locations
# The programs that are installed. To build `stormy-rehearse` builds all of them but `file-chooser`.
PROGRAMS = stormy background-agent photo-cleaner stormy-rehearse file-chooser
# Where `make install` puts them; DESTDIR stands before that, for packagers. NAME: what the command is called.
PREFIX ?= /usr/local
DESTDIR ?=
NAME ?= stormy
# Where what is installed is built. A dependency compiles the length of its source's path into the program (`withoutActuallyEscaping`): all
# checkouts build below a path of one length, so that two of one commit make the same bytes.
RELEASE := $(CURDIR)/.build/$(shell printf 'r%*s' "$$((110 - $$(printf %s '$(CURDIR)' | wc -c)))" '' | tr ' ' e)
# A clean clone is built without debug information, without the system's modules in the index, and each module as a whole: half of the time.
# Other flags in the same folder build everything again, so a folder that plain `swift build` made keeps SwiftPM's own flags, and so does one
# after `make plain`.
FAST := $(if $(wildcard .build),$(wildcard .build/fast),yes)
FLAGS := $(if $(FAST),-debug-info-format none $(addprefix -Xswiftc ,-whole-module-optimization -no-emit-module-separately-wmo \
	-num-threads 2 -index-ignore-system-modules -index-ignore-clang-modules))
# Modules without effects.
PURE = BackgroundScheduling TransferMachines BackgroundNotices StormyWeather
# Modules with threads.
THREADED = BackgroundTransfer CurlTransport BackgroundAgent BackgroundLedger DesktopServices
# Of these what one thread alone does, many times over: nothing for that sanitizer to see, and a quarter of its time.
ONE_THREADED = BackgroundLedgerTests.TransferChoiceTests BackgroundLedgerTests.RequestChoiceTests
# Tests that need a process, a bus or a server. `make check` leaves them out; a test of the house looks that none is forgotten.
EFFECTS = BackgroundAgentTests.AdoptionTests EndToEndTests DesktopServicesTests CurlTransportTests FaultyServerTests PhotoLocationsTests.ExifToolTests \
	BackgroundTransferTests.OrdinarySession BackgroundTransferTests.Session BackgroundTransferTests.URLProtocolTests \
	BackgroundLedgerTests.BellTests BackgroundLedgerTests.ChildProcessTests BackgroundLedgerTests.FileLockTests BackgroundLedgerTests.LedgerFaultTests \
	BackgroundTasksTests.RegistrationTests BackgroundSchedulingTests.WallClockOracleTests \
	BackgroundTasksTestingTests.NetworkConformanceTests BackgroundTasksTestingTests.EveryOtherEndTests \
	BackgroundAgentTests.LauncherConformanceTests BackgroundAgentTests.ActivationTests \
	StormyCommandTests.CheckCommandTests StormyCommandTests.Photo StormyCommandTests.Upload
# Tests of which CI runs a part (`TABLE_SAMPLE`).
TABLES = EndToEndTests.EndToEnd/Faults EndToEndTests.EndToEnd/UploadFaults EndToEndTests.EndToEnd/Doctor/findsWhatIsBroken \
	BackgroundSchedulingTests.WallClockOracleTests StormyWeatherTests.StormLifePropertyTests StormyWeatherTests.AlertTests/oneNotice \
	TransferMachinesTests.SharedFolderPropertyTests PhotoLocationsTests.HostileFileTests BackgroundTasksTestingTests.MatrixTests/everyPromise
# Those that need no desktop.
UNIT = $(PURE) UserUnits BackgroundLedger BackgroundAgent BackgroundTransfer CurlTransport FaultyServer StormyConfiguration PhotoLocations
# $(1): tests, or modules; what --filter has to say for them.
empty =
tests = ^($(subst $(empty) $(empty),|,$(strip $(1))))
tests_of = $(call tests,$(1))Tests
# Swift's own driver does not know it here: told to the compilers of C and C++, without a runtime.
UNDEFINED = $(foreach flag,-fsanitize=undefined -fno-sanitize=function -fsanitize-trap=all,-Xcc $(flag) -Xcxx $(flag))

# The runner begins every test at once, and some hold many descriptors.
export SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH ?= 32
# The width of the end-to-end tests, each of which starts many processes.
PROCESSES_WIDTH ?= 16

.DEFAULT_GOAL := help
.PHONY: help demo build-folder plain install uninstall deb dist test-package test-reproducible test-tutorial release build check docs test test-build proofs tables test-interop interop-sample interop-packages notification-servers notification-servers-sample compare torture restarts simulate matrix sanitize-thread sanitize-address sanitize-undefined fuzz photos coverage mutate format lint run-packages test-packages benchmark-packages photo-packages compare-packages screenshot benchmark benchmark-transfers benchmark-uploads benchmark-weather benchmark-day benchmark-waiting benchmark-notifications

help: ## Show this list (times on two cores)
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-20s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: run-packages build-folder ## Show the main job in a throw-away home (under 2 min from a clean clone)
	$(SWIFT) build $(FLAGS) --product stormy-rehearse
	.build/debug/stormy demo

build-folder:
	@$(if $(FAST),mkdir -p .build && touch .build/fast)

plain: ## Build with SwiftPM's own flags from now on: debug information, and plain `swift build` in the same folder
	mkdir -p .build && rm -f .build/fast

install: release ## Install for everybody, or with PREFIX=$HOME/.local for yourself (NAME= renames the command)
	install -d "$(DESTDIR)$(PREFIX)/bin" "$(DESTDIR)$(PREFIX)/libexec"
	install -s -m 755 "$(RELEASE)/release/stormy" "$(DESTDIR)$(PREFIX)/bin/$(NAME)"
	for product in $(filter-out stormy,$(PROGRAMS)); do \
	    install -s -m 755 "$(RELEASE)/release/$$product" "$(DESTDIR)$(PREFIX)/libexec/$$product" || exit 1; done
	"$(RELEASE)/release/stormy" install --into "$(DESTDIR)$(PREFIX)/share" --program "$(PREFIX)/bin/$(NAME)" >/dev/null
	@case ":$$PATH:" in *":$(PREFIX)/bin:"*) command="$(NAME)" ;; *) command="$(PREFIX)/bin/$(NAME)" ;; esac; \
	    echo "Installed. Now: $$command place add Sydney -33.87,151.21 && $$command schedule"

uninstall: ## Take away what `make install` put there; `stormy quit` first ends what goes on
	rm -f "$(DESTDIR)$(PREFIX)/bin/$(NAME)"
	for product in $(filter-out stormy,$(PROGRAMS)); do rm -f "$(DESTDIR)$(PREFIX)/libexec/$$product"; done
	cd "$(DESTDIR)$(PREFIX)/share" && rm -f applications/stormy.desktop metainfo/io.github.stormy.Stormy.metainfo.xml \
	    icons/hicolor/scalable/apps/stormy.svg bash-completion/completions/$(NAME) zsh/site-functions/_$(NAME) \
	    fish/vendor_completions.d/$(NAME).fish man/man1/$(NAME).1 man/man1/$(NAME)-*.1

deb: release ## Make a Debian package in .build/packages, and its bill of materials (dpkg-dev)
	$(call install,dpkg-dev xz-utils)
	rm -rf .build/stage && $(MAKE) --no-print-directory install DESTDIR=$(CURDIR)/.build/stage PREFIX=/usr NAME=stormy >/dev/null
	python3 Packaging/package.py deb .build/stage .build/packages/stormy.deb

test-package: deb ## Install that package in a clean Debian 12, use it, upgrade it, purge it (as root)
	$(call install,debootstrap)
	python3 Tests/Packaging/clean_root.py .build/packages/stormy.deb .build/clean-root

test-reproducible: run-packages ## Make the package twice in two folders: the same bytes (10 min)
	$(call install,dpkg-dev xz-utils)
	Tests/Packaging/twice.sh .

dist: release ## Make a folder that works wherever it is unpacked, as .build/packages/stormy.tar.xz
	rm -rf .build/stage && $(MAKE) --no-print-directory install DESTDIR=$(CURDIR)/.build/stage PREFIX=/usr NAME=stormy >/dev/null
	python3 Packaging/package.py tarball .build/stage .build/packages/stormy.tar.xz

release: run-packages build-folder ## Build what a person runs, for installing (under 4 min)
	@mkdir -p .build
	python3 Packaging/icu_data.py .build/icu-data.o
	for product in stormy-rehearse file-chooser; do \
	    ICU_DATA=$(CURDIR)/.build/icu-data.o $(SWIFT) build -c release --static-swift-stdlib --scratch-path "$(RELEASE)" -Xcc -ffile-prefix-map=$(CURDIR)/= \
	        -Xcc "-ffile-prefix-map=$(RELEASE)/=" \
	        --product $$product || exit 1; done

build: run-packages build-folder ## Build everything
	$(SWIFT) build $(FLAGS)

check: lint test-build ## Lint, and every test that needs no process, bus or server (under 90 s once built)
	$(SWIFT) test --skip-build --skip '$(call tests,$(EFFECTS))'

test: test-build ## Every test, on private buses with a real notification server (about 6 min once built)
	PROCESSES_WIDTH=$(PROCESSES_WIDTH) Tests/all.sh .build/test-logs

test-build: run-packages test-packages build-folder
	$(SWIFT) build $(FLAGS) --build-tests

proofs: test-build torture restarts notification-servers test-interop simulate sanitize-thread sanitize-address sanitize-undefined fuzz tables test-package test-reproducible test-tutorial ## Kills, real servers, 10,000 seeds, sanitizers, fuzzers, whole tables, the package (about an hour)

tables: test-build ## Every row of the large tables: faults at every point where an agent can die, zones, storms, what doctor finds
	$(SWIFT) test --skip-build --filter '$(call tests,$(TABLES))'

docs: build test-packages ## Compile the documentation of what authors import (a warning is an error), type README's quick start, and make and run the apps of README and guides
	Tests/Documentation/docs.sh .build .build/documentation
	python3 Tests/Documentation/readme.py

test-tutorial: build test-packages ## README's quick start and the apps of README and guides; the app of the tutorial is also built for release and installed
	python3 Tests/Documentation/readme.py --ship

screenshot: test-build ## Take the README's picture of the notification again
	STORMY_SCREENSHOT=$(CURDIR)/Resources/notification.png $(SWIFT) test --skip-build --filter NotificationPicture

simulate: run-packages build-folder ## Seeded days of a virtual desktop, and hostile months, every invariant checked: make simulate SEEDS=10000 MONTHS=300 WHYS=10000 SEED=1
	$(SWIFT) build $(if $(filter debug,$(CONFIGURATION)),$(FLAGS)) -c $(CONFIGURATION) --product simulate
	.build/$(CONFIGURATION)/simulate $(SEEDS) --from $(SEED)
	.build/$(CONFIGURATION)/simulate $(MONTHS) --from $(SEED) --month
	.build/$(CONFIGURATION)/simulate $(WHYS) --from $(SEED) --why
	.build/$(CONFIGURATION)/simulate --year-of-noons

matrix: run-packages ## Every cause in every state, beside what is promised
	$(SWIFT) build -c release --product simulate
	.build/release/simulate --matrix

sanitize-thread: export ONLY_TESTS_OF = $(THREADED)
sanitize-thread: run-packages test-packages ## The modules with threads under the thread sanitizer
	$(SWIFT) build --build-tests --sanitize=thread --scratch-path .build-thread
	TSAN_OPTIONS="suppressions=$(CURDIR)/Tests/Sanitizers/thread.supp" $(SWIFT) test --skip-build --sanitize=thread --scratch-path .build-thread \
	    --skip '$(call tests,$(ONE_THREADED))'

sanitize-address: run-packages test-packages ## Every test but the end-to-end ones under the address sanitizer
	$(SWIFT) build --build-tests --sanitize=address --scratch-path .build-address
	ASAN_OPTIONS="detect_leaks=0:suppressions=$(CURDIR)/Tests/Sanitizers/address.supp" $(SWIFT) test --skip-build --sanitize=address --scratch-path .build-address --filter '$(call tests_of,$(UNIT))'

sanitize-undefined: run-packages test-packages ## The same in C and C++ under the undefined-behaviour sanitizer, which ends the process there (Swift traps by itself)
	$(SWIFT) build --build-tests $(UNDEFINED) --scratch-path .build-undefined
	$(SWIFT) test --skip-build $(UNDEFINED) --scratch-path .build-undefined --filter '$(call tests_of,$(UNIT))'

fuzz: run-packages ## Six fuzzers, one of them for each container of photos, FUZZ_SECONDS each: what servers, apps, other writers of a ledger, people and cameras may say
	for product in $(FUZZERS); do \
	    FUZZING=1 $(SWIFT) build --sanitize=fuzzer --scratch-path .build-fuzz --product $$product || exit 1; done
	python3 Tests/Laboratory/Fuzzing/fuzz.py .build-fuzz/debug $(FUZZ_SECONDS) $(FUZZERS)

photos: build photo-packages ## Photos and films of common tools, and damaged copies: no location, and the same pixels: make photos PHOTOS=10000 SEED=1
	rm -rf .build/photos && python3 Tests/PhotoLocations/samples.py .build/photos
	/usr/bin/python3 Tests/PhotoLocations/judge.py .build/debug/photo-cleaner .build/photos $(PHOTOS) $(SEED)

coverage: run-packages test-packages ## Which lines of the pure modules the tests reach
	$(SWIFT) test --enable-code-coverage --scratch-path .build-coverage --filter '$(call tests_of,$(PURE))'
	python3 Tests/coverage.py .build-coverage

mutate: run-packages test-packages ## Injected bugs, at least three for each invariant: which test catches each (hours)
	python3 Tests/Mutations/mutate.py

torture: build test-packages interop-packages ## Kills and power cuts, at named points and at any moment: while fifty requests go round, while files and photos move
	python3 Tests/Torture/torture.py --power $(KILLS) $(SEED)
	python3 Tests/Torture/transfers.py --power $(TRANSFER_KILLS) $(SEED)

restarts: build test-packages ## Notification server, agent and session bus restarted at any moment: make restarts RESTARTS=1000 SEED=1
	python3 Tests/Torture/restarts.py $(RESTARTS) $(SEED)

test-interop: build interop-packages ## Downloads and photos from and to a dozen real servers, interrupted
	python3 Tests/Interop/downloads.py
	python3 Tests/Interop/uploads.py
	python3 Tests/Interop/resent.py

interop-sample: build interop-packages ## Three of those servers, chosen by SEED
	python3 Tests/Interop/sample.py $(SEED)

notification-servers: build test-packages ## Ten real notification servers: real presses, restarts, kills; the table of the docs (30 min)
	python3 Tests/NotificationServers/conformance.py --all --write

notification-servers-sample: build test-packages
	python3 Tests/NotificationServers/conformance.py --sample $(SEED)

compare: build test-packages compare-packages ## Beside systemd timers, cron, a nohup loop and workmanager_linux: 40 behaviours, really tried; the table of the docs (as root, 10 min)
	python3 Tests/Laboratory/Compare/compare.py --write

benchmark: build test-packages benchmark-packages ## Due instant to notification, idle wake-ups, memory
	python3 Tests/Laboratory/Benchmarks/benchmark.py

benchmark-transfers: run-packages test-packages benchmark-packages ## Downloads beside curl: 1 GiB, 200 small files, memory, the next of 100,000
	for product in background-agent stormy courier-example proving-ground; do \
	    $(SWIFT) build -c release --static-swift-stdlib --product $$product || exit 1; done
	python3 Tests/Laboratory/Benchmarks/transfers.py

benchmark-uploads: run-packages test-packages benchmark-packages ## Photos beside curl and rclone: 500 of 200 kB, 10,000 queued, one of 2 GiB
	for product in background-agent photo-cleaner stormy; do \
	    $(SWIFT) build -c release --static-swift-stdlib --product $$product || exit 1; done
	python3 Tests/Laboratory/Benchmarks/uploads.py

benchmark-weather: run-packages test-packages ## An answer of 1 MB, a noon of 1,000 places, the report of a year
	for product in background-agent stormy; do \
	    $(SWIFT) build -c release --static-swift-stdlib --product $$product || exit 1; done
	python3 Tests/Laboratory/Benchmarks/weather.py

benchmark-day: release test-packages ## What a day and an idle hour cost under a user manager: CPU, wake-ups, memory (over an hour)
	BENCHMARKED="$(RELEASE)/release" python3 Tests/Laboratory/Benchmarks/day.py

benchmark-waiting: run-packages test-packages ## What an app's submit waits while 20 GiB are downloaded and proven
	for product in background-agent stormy courier-example proving-ground; do \
	    $(SWIFT) build -c release --static-swift-stdlib --product $$product || exit 1; done
	python3 Tests/Laboratory/Benchmarks/waiting.py

benchmark-notifications: run-packages test-packages ## 1,000 notifications added in a row: in the ledger, a handful on the screen
	for product in background-agent proving-ground; do \
	    $(SWIFT) build -c release --static-swift-stdlib --product $$product || exit 1; done
	python3 Tests/Laboratory/Benchmarks/notifications.py

format: ## Format the sources
	$(SWIFT) format format --in-place --recursive Sources Tests Package.swift

lint: ## Check the format
	$(SWIFT) format lint --strict --recursive Sources Tests Package.swift

# $(1): packages. Installs those that dpkg does not know, with sudo where we are not root.
define install
	@missing=""; \
	for package in $(1); do \
	  dpkg-query -W -f '$${Status}' $$package 2>/dev/null | grep -q 'install ok installed' || missing="$$missing $$package"; \
	done; \
	if [ -n "$$missing" ]; then \
	  sudo=""; [ "$$(id -u)" = 0 ] || sudo=sudo; \
	  echo "Installing with apt-get:$$missing"; \
	  $$sudo apt-get update -qq && DEBIAN_FRONTEND=noninteractive $$sudo apt-get install -y -qq --no-install-recommends $$missing >/dev/null; \
	fi
endef

run-packages:
	$(call install,$(RUN_PACKAGES))

test-packages:
	$(call install,$(TEST_PACKAGES))

interop-packages:
	$(call install,$(INTEROP_PACKAGES))

benchmark-packages:
	$(call install,$(BENCHMARK_PACKAGES))

photo-packages:
	$(call install,$(PHOTO_PACKAGES))

compare-packages:
	$(call install,$(COMPARE_PACKAGES))
