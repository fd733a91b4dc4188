# A new machine needs two commands: `make demo` and `make test`. Both commands install missing packages and print their names.

SWIFT ?= swift
RUN_PACKAGES = libcurl4-openssl-dev libssl-dev libnotify-dev libsqlite3-dev libtomlplusplus-dev nlohmann-json3-dev libexpat1-dev zlib1g-dev pkg-config
TEST_PACKAGES = dunst xvfb dbus nginx-light imagemagick faketime xdotool sqlite3 libglib2.0-bin python3 python3-dbusmock procps util-linux iproute2 libcairo2 fonts-dejavu-core libimage-exiftool-perl xdg-desktop-portal xdg-desktop-portal-gtk zsh fish man-db desktop-file-utils appstream
INTEROP_PACKAGES = nginx-light apache2-bin lighttpd lighttpd-mod-webdav php-cli php-sabre-dav python3-venv curl
BENCHMARK_PACKAGES = jq libnotify-bin curl rclone libnginx-mod-http-dav-ext
PHOTO_PACKAGES = ffmpeg libheif-examples webp libjxl-tools libavif-bin python3-pil imagemagick libimage-exiftool-perl
COMPARE_PACKAGES = cron anacron systemd libnotify-bin curl manpages
# The size of each long test. CI uses smaller numbers.
KILLS ?= 300
TRANSFER_KILLS ?= 150
RESTARTS ?= 1000
SEEDS ?= 10000
MONTHS ?= 300
WHYS ?= 10000
PHOTOS ?= 10000
FUZZ_SECONDS ?= 60
# The seed of all random choices. An equal seed repeats the same choices.
ifndef SEED
SEED := $(shell od -An -N3 -tu4 /dev/urandom | tr -d ' ')
endif
export SEED
# The build configuration of `make simulate`.
CONFIGURATION ?= release
FUZZERS = fuzz-wire fuzz-resume fuzz-ledger fuzz-configuration fuzz-photo fuzz-locations
# The installed programs. A build of the product `stormy-rehearse` also builds the other programs, except `file-chooser`.
PROGRAMS = stormy background-agent photo-cleaner stormy-rehearse file-chooser
# PREFIX is the folder of `make install`. If packagers set DESTDIR, the path of DESTDIR is put before PREFIX. NAME is the name of
# the installed command.
PREFIX ?= /usr/local
DESTDIR ?=
NAME ?= stormy
# The build folder of the installed programs. A dependency with `withoutActuallyEscaping` compiles the length of its source path
# into the program. The path of the build folder is therefore padded to the same length in all checkouts. Two builds of one commit
# are then equal.
RELEASE := $(CURDIR)/.build/$(shell printf 'r%*s' "$$((110 - $$(printf %s '$(CURDIR)' | wc -c)))" '' | tr ' ' e)
# A clean clone is built without debug information, without the system's modules in the index, and with whole-module optimization.
# This build takes half of the time. Different flags in the same folder cause a complete rebuild. If plain `swift build` made the
# folder, SwiftPM's own flags are therefore kept. After `make plain`, SwiftPM's own flags are also used.
FAST := $(if $(wildcard .build),$(wildcard .build/fast),yes)
FLAGS := $(if $(FAST),-debug-info-format none $(addprefix -Xswiftc ,-whole-module-optimization -no-emit-module-separately-wmo \
	-num-threads 2 -index-ignore-system-modules -index-ignore-clang-modules))
# Modules without effects.
PURE = BackgroundScheduling TransferMachines BackgroundNotices StormyWeather
# Modules with threads.
THREADED = BackgroundTransfer CurlTransport BackgroundAgent BackgroundLedger DesktopServices
# Tests of these modules that use a single thread and repeat many times. The thread sanitizer finds nothing in these tests, and
# the tests take a quarter of the sanitizer's time.
ONE_THREADED = BackgroundLedgerTests.TransferChoiceTests BackgroundLedgerTests.RequestChoiceTests
# Tests that need a process, a bus or a server. `make check` skips these tests. An architecture test checks that the list is
# complete.
EFFECTS = BackgroundAgentTests.AdoptionTests EndToEndTests DesktopServicesTests CurlTransportTests FaultyServerTests PhotoLocationsTests.ExifToolTests \
	BackgroundTransferTests.OrdinarySession BackgroundTransferTests.Session BackgroundTransferTests.URLProtocolTests \
	BackgroundLedgerTests.ChangeListenerTests BackgroundLedgerTests.ChildProcessTests BackgroundLedgerTests.FileLockTests BackgroundLedgerTests.LedgerFaultTests \
	BackgroundTasksTests.RegistrationTests BackgroundSchedulingTests.WallClockOracleTests \
	BackgroundTasksTestingTests.NetworkConformanceTests BackgroundTasksTestingTests.EveryOtherEndTests \
	BackgroundAgentTests.LauncherConformanceTests BackgroundAgentTests.ActivationTests \
	StormyCommandTests.CheckCommandTests StormyCommandTests.Photo StormyCommandTests.Upload
# The tests of large tables. CI tests only a sample of the rows (`TABLE_SAMPLE`).
TABLES = EndToEndTests.EndToEnd/Faults EndToEndTests.EndToEnd/UploadFaults EndToEndTests.EndToEnd/Doctor/.doctor.finds.what.is.broken \
	BackgroundSchedulingTests.WallClockOracleTests StormyWeatherTests.StormLifePropertyTests StormyWeatherTests.AlertTests/oneNotice \
	TransferMachinesTests.SharedFolderPropertyTests PhotoLocationsTests.HostileFileTests BackgroundTasksTestingTests.MatrixTests/.every.promise
# Modules whose tests need no desktop.
UNIT = $(PURE) UserUnits BackgroundLedger BackgroundAgent BackgroundTransfer CurlTransport FaultyServer StormyConfiguration PhotoLocations
# Returns the pattern for the options `--filter` and `--skip`. $(1) is a list of tests (`tests`) or modules (`tests_of`).
empty =
tests = ^($(subst $(empty) $(empty),|,$(strip $(1))))
tests_of = $(call tests,$(1))Tests
# The Swift driver does not support the sanitizer of undefined behaviour. The C and C++ compilers therefore get the flags, and no
# runtime library is needed.
UNDEFINED = $(foreach flag,-fsanitize=undefined -fno-sanitize=function -fsanitize-trap=all,-Xcc $(flag) -Xcxx $(flag))

# Without a limit, the test runner starts all tests at the same time, and some tests open many file descriptors.
export SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH ?= 32
# The number of end-to-end tests that run at the same time. Each of these tests starts many processes.
PROCESSES_WIDTH ?= 16

.DEFAULT_GOAL := help
.PHONY: help demo build-folder plain install uninstall release-demo deb dist test-package test-reproducible test-tutorial release build check docs test test-build proofs tables test-interop interop-sample interop-packages notification-servers notification-servers-sample compare torture restarts simulate matrix sanitize-thread sanitize-address sanitize-undefined fuzz photos coverage mutate format lint run-packages test-packages benchmark-packages photo-packages compare-packages screenshot benchmark benchmark-transfers benchmark-uploads benchmark-weather benchmark-day benchmark-waiting benchmark-notifications

help: ## Show this list (times on two cores)
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-20s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: run-packages build-folder ## Show the main job in a throw-away home (under 2 min from a clean clone)
	$(SWIFT) build $(FLAGS) --product stormy-rehearse
	.build/debug/stormy demo

build-folder:
	@$(if $(FAST),mkdir -p .build && touch .build/fast)

plain: ## Use SwiftPM's own flags from now on: with debug information, and compatible with plain `swift build` in the same folder
	mkdir -p .build && rm -f .build/fast

install: release ## Install for all users, or for yourself with PREFIX=$HOME/.local (NAME= renames the command)
	install -d "$(DESTDIR)$(PREFIX)/bin" "$(DESTDIR)$(PREFIX)/libexec"
	install -s -m 755 "$(RELEASE)/release/stormy" "$(DESTDIR)$(PREFIX)/bin/$(NAME)"
	for product in $(filter-out stormy,$(PROGRAMS)); do \
	    install -s -m 755 "$(RELEASE)/release/$$product" "$(DESTDIR)$(PREFIX)/libexec/$$product" || exit 1; done
	"$(RELEASE)/release/stormy" install --into "$(DESTDIR)$(PREFIX)/share" --program "$(PREFIX)/bin/$(NAME)" >/dev/null
	@case ":$$PATH:" in *":$(PREFIX)/bin:"*) command="$(NAME)" ;; *) command="$(PREFIX)/bin/$(NAME)" ;; esac; \
	    echo "Installed. Now: $$command place add Sydney -33.87,151.21 && $$command schedule"

uninstall: ## Remove the files that `make install` installed; run `stormy quit` first to stop the agent
	rm -f "$(DESTDIR)$(PREFIX)/bin/$(NAME)"
	for product in $(filter-out stormy,$(PROGRAMS)); do rm -f "$(DESTDIR)$(PREFIX)/libexec/$$product"; done
	cd "$(DESTDIR)$(PREFIX)/share" && rm -f applications/stormy.desktop metainfo/io.github.stormy.Stormy.metainfo.xml \
	    icons/hicolor/scalable/apps/stormy.svg bash-completion/completions/$(NAME) zsh/site-functions/_$(NAME) \
	    fish/vendor_completions.d/$(NAME).fish man/man1/$(NAME).1 man/man1/$(NAME)-*.1

deb: release ## Make a Debian package and its bill of materials in .build/packages (dpkg-dev)
	$(call install,dpkg-dev xz-utils)
	rm -rf .build/stage && $(MAKE) --no-print-directory install DESTDIR=$(CURDIR)/.build/stage PREFIX=/usr NAME=stormy >/dev/null
	python3 Packaging/package.py deb .build/stage .build/packages/stormy.deb

test-package: deb ## Install the package in a clean Debian 12 and 13, use, upgrade and purge it (as root)
	$(call install,debootstrap)
	python3 Tests/Packaging/clean_root.py .build/packages/stormy.deb .build/clean-root

test-reproducible: run-packages ## Make the package in two different folders and check that the files are equal (10 min)
	$(call install,dpkg-dev xz-utils)
	Tests/Packaging/twice.sh .

dist: release ## Make .build/packages/stormy.tar.xz, whose folder works at any place
	$(call install,xz-utils)
	rm -rf .build/stage && $(MAKE) --no-print-directory install DESTDIR=$(CURDIR)/.build/stage PREFIX=/usr NAME=stormy >/dev/null
	python3 Packaging/package.py tarball .build/stage .build/packages/stormy.tar.xz

release: run-packages build-folder ## Build the programs for installation (under 4 min)
	$(call install,python3 git)
	@mkdir -p .build
	python3 Packaging/icu_data.py .build/icu-data.o
	for product in stormy-rehearse file-chooser; do \
	    ICU_DATA=$(CURDIR)/.build/icu-data.o STORMY_VERSION="$$(python3 Packaging/package.py version)" \
	        $(SWIFT) build -c release --static-swift-stdlib --scratch-path "$(RELEASE)" -Xcc -ffile-prefix-map=$(CURDIR)/= \
	        -Xcc "-ffile-prefix-map=$(RELEASE)/=" \
	        --product $$product || exit 1; done

release-demo: release ## Show the main job with the programs for installation, which the optimizer changed
	"$(RELEASE)/release/stormy" demo

build: run-packages build-folder ## Build everything
	$(SWIFT) build $(FLAGS)

check: lint test-build ## Run lint and the tests that need no process, bus or server (under 90 s after the build)
	$(SWIFT) test --skip-build --skip '$(call tests,$(EFFECTS))'

test: test-build ## Run all tests, on private buses with a real notification server (about 6 min after the build)
	PROCESSES_WIDTH=$(PROCESSES_WIDTH) Tests/all.sh .build/test-logs

test-build: run-packages test-packages build-folder
	$(SWIFT) build $(FLAGS) --build-tests

proofs: test-build torture restarts notification-servers test-interop simulate sanitize-thread sanitize-address sanitize-undefined fuzz tables test-package test-reproducible test-tutorial ## Run all proofs: kills, real servers, 10,000 seeds, sanitizers, fuzzers, complete tables, the package (about an hour)

tables: test-build ## Test every row of the large tables: faults at every kill point of the agent, time zones, storms, problems that doctor finds
	$(SWIFT) test --skip-build --filter '$(call tests,$(TABLES))'

docs: build test-packages ## Compile the documentation of the public modules (a warning is an error), type README's quick start, and build and run the apps of README and guides
	Tests/Documentation/docs.sh .build .build/documentation
	python3 Tests/Documentation/readme.py

test-tutorial: build test-packages ## Run README's quick start and the apps of README and guides; the app of the tutorial is also built for release and installed
	python3 Tests/Documentation/readme.py --ship

screenshot: test-build ## Take the picture of the notification for README again
	STORMY_SCREENSHOT=$(CURDIR)/Resources/notification.png $(SWIFT) test --skip-build --filter NotificationPicture

simulate: run-packages build-folder ## Simulate days and hostile months of a virtual desktop and check every invariant: make simulate SEEDS=10000 MONTHS=300 WHYS=10000 SEED=1
	$(SWIFT) build $(if $(filter debug,$(CONFIGURATION)),$(FLAGS)) -c $(CONFIGURATION) --product simulate
	.build/$(CONFIGURATION)/simulate $(SEEDS) --from $(SEED)
	.build/$(CONFIGURATION)/simulate $(MONTHS) --from $(SEED) --month
	.build/$(CONFIGURATION)/simulate $(WHYS) --from $(SEED) --why
	.build/$(CONFIGURATION)/simulate --year-of-noons

matrix: run-packages ## Print the result of every cause in every state next to the promised result
	$(SWIFT) build -c release --product simulate
	.build/release/simulate --matrix

sanitize-thread: export ONLY_TESTS_OF = $(THREADED)
sanitize-thread: run-packages test-packages ## Test the modules with threads under the thread sanitizer
	$(SWIFT) build --build-tests --sanitize=thread --scratch-path .build-thread
	TSAN_OPTIONS="suppressions=$(CURDIR)/Tests/Sanitizers/thread.supp" $(SWIFT) test --skip-build --sanitize=thread --scratch-path .build-thread \
	    --skip '$(call tests,$(ONE_THREADED))'

sanitize-address: run-packages test-packages ## Test the modules that need no desktop under the address sanitizer
	$(SWIFT) build --build-tests --sanitize=address --scratch-path .build-address
	ASAN_OPTIONS="detect_leaks=0:suppressions=$(CURDIR)/Tests/Sanitizers/address.supp" $(SWIFT) test --skip-build --sanitize=address --scratch-path .build-address --filter '$(call tests_of,$(UNIT))'

sanitize-undefined: run-packages test-packages ## Run the same tests with undefined-behaviour traps in C and C++ code (Swift code traps without a sanitizer)
	$(SWIFT) build --build-tests $(UNDEFINED) --scratch-path .build-undefined
	$(SWIFT) test --skip-build $(UNDEFINED) --scratch-path .build-undefined --filter '$(call tests_of,$(UNIT))'

fuzz: run-packages ## Six fuzzers, one of them for each container of photos, FUZZ_SECONDS each: what servers, apps, other writers of a ledger, people and cameras may say
	for product in $(FUZZERS); do \
	    FUZZING=1 $(SWIFT) build --sanitize=fuzzer --scratch-path .build-fuzz --product $$product || exit 1; done
	python3 Tests/Laboratory/Fuzzing/fuzz.py .build-fuzz/debug $(FUZZ_SECONDS) $(FUZZERS)

photos: build photo-packages ## Photos and films of common tools, and damaged copies: no location, and the same pixels: make photos PHOTOS=10000 SEED=1
	rm -rf .build/photos && python3 Tests/PhotoLocations/samples.py .build/photos
	/usr/bin/python3 Tests/PhotoLocations/judge.py .build/debug/photo-cleaner .build/photos $(PHOTOS) $(SEED)

coverage: run-packages test-packages ## Print how many lines of the pure modules the tests reach
	$(SWIFT) test --enable-code-coverage --scratch-path .build-coverage --filter '$(call tests_of,$(PURE))'
	python3 Tests/coverage.py .build-coverage

mutate: run-packages test-packages ## Inject at least three bugs for each invariant and print which test catches each bug (hours)
	python3 Tests/Mutations/mutate.py

torture: build test-packages interop-packages ## Kills and power cuts, at named points and at any moment: while fifty requests go round, while files and photos move
	python3 Tests/Torture/torture.py --power $(KILLS) $(SEED)
	python3 Tests/Torture/transfers.py --power $(TRANSFER_KILLS) $(SEED)

restarts: build test-packages ## Restart the notification server, the agent and the session bus at random moments: make restarts RESTARTS=1000 SEED=1
	python3 Tests/Torture/restarts.py $(RESTARTS) $(SEED)

test-interop: build interop-packages ## Interrupt downloads from real servers and photo uploads to real servers
	python3 Tests/Interop/downloads.py
	python3 Tests/Interop/uploads.py
	python3 Tests/Interop/resent.py

interop-sample: build interop-packages ## Run `make test-interop` with three of its servers, chosen by SEED
	python3 Tests/Interop/sample.py $(SEED)

notification-servers: build test-packages ## Test ten real notification servers (presses, restarts, kills) and write the table of the docs (30 min)
	python3 Tests/NotificationServers/conformance.py --all --write

notification-servers-sample: build test-packages
	python3 Tests/NotificationServers/conformance.py --sample $(SEED)

compare: build test-packages compare-packages ## Run 40 behaviours with Stormy, systemd timers, cron, a nohup loop and workmanager_linux, and write the table of the docs (as root, 10 min)
	python3 Tests/Laboratory/Compare/compare.py --write

benchmark: build test-packages benchmark-packages ## Measure the time from a due date to its notification, idle wake-ups and memory
	python3 Tests/Laboratory/Benchmarks/benchmark.py

benchmark-transfers: run-packages test-packages benchmark-packages ## Compare downloads with curl: 1 GiB, 200 files, memory, next of 100,000
	for product in background-agent stormy courier-example proving-ground; do \
	    $(SWIFT) build -c release --static-swift-stdlib --product $$product || exit 1; done
	python3 Tests/Laboratory/Benchmarks/transfers.py

benchmark-uploads: run-packages test-packages benchmark-packages ## Compare uploads with curl and rclone: 500 of 200 kB, 10,000 queued, 2 GiB
	for product in background-agent photo-cleaner stormy; do \
	    $(SWIFT) build -c release --static-swift-stdlib --product $$product || exit 1; done
	python3 Tests/Laboratory/Benchmarks/uploads.py

benchmark-weather: run-packages test-packages ## Measure a weather response of 1 MB, a daily check of 1,000 places, the report of a year
	for product in background-agent stormy; do \
	    $(SWIFT) build -c release --static-swift-stdlib --product $$product || exit 1; done
	python3 Tests/Laboratory/Benchmarks/weather.py

benchmark-day: release test-packages ## Measure CPU, wake-ups and memory of a day and of an idle hour under a user manager (over an hour)
	BENCHMARKED="$(RELEASE)/release" python3 Tests/Laboratory/Benchmarks/day.py

benchmark-waiting: run-packages test-packages ## Measure how long an app's submit waits while 20 GiB are downloaded and their digest is checked
	for product in background-agent stormy courier-example proving-ground; do \
	    $(SWIFT) build -c release --static-swift-stdlib --product $$product || exit 1; done
	python3 Tests/Laboratory/Benchmarks/waiting.py

benchmark-notifications: run-packages test-packages ## Measure 1,000 notifications in a row, of which the screen shows a few
	for product in background-agent proving-ground; do \
	    $(SWIFT) build -c release --static-swift-stdlib --product $$product || exit 1; done
	python3 Tests/Laboratory/Benchmarks/notifications.py

format: ## Format the sources
	$(SWIFT) format format --in-place --recursive Sources Tests Package.swift

lint: ## Check the format, and the share of sentences that are hard to read
	$(SWIFT) format lint --strict --recursive Sources Tests Package.swift
	python3 Tests/Documentation/words.py

# $(1) is a list of packages. Installs the packages that are missing, with sudo if the user is not root.
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
