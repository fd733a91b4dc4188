import GRDB

/// The tables of the ledger, with one migration for each version. A published migration is never changed.
enum LedgerSchema {
    static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1: requests, launches, transfers, notifications") { database in
            try createFacts(database)
            try createScheduling(database)
            try createTransfers(database)
            try createNotifications(database)
        }
        migrator.registerMigration("2: classes of requests, what woke, continued processing") { database in
            try addRequestClasses(database)
            try addContinuedProcessing(database)
        }
        migrator.registerMigration("3: queues of transfers by need and host, destinations, resume data") { database in
            try addTransferQueues(database)
            try addEventClaims(database)
        }
        migrator.registerMigration("4: receipts of uploads") { database in
            try database.alter(table: "transfer") { table in
                for text in ["receipt", "originalSHA256"] { table.add(column: text, .text) }
            }
        }
        migrator.registerMigration("5: patience from the start, destinations that are not replaced") { database in
            try addPatience(database)
        }
        migrator.registerMigration("6: uploads whose answer is open") { database in
            try database.execute(
                sql: """
                    CREATE INDEX transferOpenAnswer ON transfer (url)
                        WHERE kind = 'upload' AND uploadState IS NOT NULL AND state NOT IN ('completed', 'cancelled')
                    """)
        }
        migrator.registerMigration("7: processes that wait for one transfer") { database in
            try database.execute(
                sql: """
                    ALTER TABLE attachment ADD COLUMN transfer INTEGER;
                    CREATE INDEX attachmentTransfer ON attachment (transfer) WHERE transfer IS NOT NULL;
                    """)
        }
        migrator.registerMigration("8: which file a download replaces") { database in
            try database.alter(table: "transfer") { $0.add(column: "replacedFile", .text) }
        }
        migrator.registerMigration("9: names of what uploads stored") { database in try addStoredNames(database) }
        migrator.registerMigration("10: triggers of notifications, what categories say, texts of answers") { database in
            try database.alter(table: "notification") { $0.add(column: "schedule", .text) }
            try database.alter(table: "notificationCategory") { $0.add(column: "details", .text) }
            try database.alter(table: "notificationResponse") { $0.add(column: "userText", .text) }
        }
        migrator.registerMigration("11: notifications that a summary tells of, or that leave the screen") { database in
            try database.alter(table: "notification") { table in
                table.add(column: "summary", .text)
                table.add(column: "leavingID", .integer)
                table.add(column: "mayStand", .boolean)
                table.add(column: "addedAt", .double)
            }
            try database.create(indexOn: "notification", columns: ["summary"], condition: Column("summary") != nil)
        }
        migrator.registerMigration("12: what lets an app raise a window, and what a delegate wants shown") { database in
            try database.alter(table: "notificationResponse") { $0.add(column: "activationToken", .text) }
            try database.alter(table: "notification") { table in
                table.add(column: "heldUntil", .double)
                table.add(column: "presentation", .integer)
                table.add(column: "silencedAt", .double)
            }
        }
        migrator.registerMigration("13: requests that wake the machine") { database in
            try database.alter(table: "request") { $0.add(column: "wakesSystem", .boolean).notNull().defaults(to: false) }
            try database.execute(sql: "CREATE INDEX requestWaking ON request (earliestBegin) WHERE wakesSystem")
        }
        migrator.registerMigration("14: folders of downloads, as the process that queued them saw them") { database in
            try database.alter(table: "transfer") { $0.add(column: "destinationFolder", .text) }
        }
        migrator.registerMigration("15: folders whose changes launch a request", migrate: FolderWatchRecord.createTable)
        migrator.registerMigration("16: data that stays on servers", migrate: Leftover.createTable)
        return migrator
    }

    /// Adds columns that divide requests into classes. An index finds the first due request of a class, so the cost does not
    /// depend on the number of requests. SQLite computes these columns, so their values are correct even if an agent of the
    /// previous version writes a row.
    private static func addRequestClasses(_ database: Database) throws {
        try database.alter(table: "request") { table in
            table.add(column: "runsInLowPowerMode", .boolean).notNull().defaults(to: false)
            table.add(column: "dueAt", .double)
                .generatedAs(
                    sql: "max(cast(coalesce(earliestBegin, 0) AS REAL), cast(coalesce(backoffUntil, 0) AS REAL))", .virtual)
            table.add(column: "lastFailureAt", .double)
            // The bits of this column are the bits of `RequestNeeds`.
            table.add(column: "needs", .integer).generatedAs(
                sql: """
                    requiresNetwork + 2 * requiresExternalPower + 4 * (runsInLowPowerMode = 0) + 8 * (kind = 'appRefresh')
                    """, .virtual)
        }
        try database.create(index: "launchIdentifier", on: "launch", columns: ["identifier"])
        try database.execute(
            sql: """
                CREATE INDEX requestDue ON request (needs, dueAt, submittedAt, identifier) WHERE kind <> 'continuedProcessing';
                CREATE INDEX requestSkip ON request (dueAt) WHERE missed = 'skip';
                CREATE INDEX requestRule ON request (identifier) WHERE recurrence IS NOT NULL;
                CREATE INDEX requestBackoff ON request (backoffUntil) WHERE backoffUntil IS NOT NULL;
                CREATE INDEX requestKind ON request (kind, submittedAt);
                """)
        try database.alter(table: "launch") { table in
            table.add(column: "requiresNetwork", .boolean).notNull().defaults(to: false)
            table.add(column: "requiresExternalPower", .boolean).notNull().defaults(to: false)
            table.add(column: "woke", .text)
            table.add(column: "askedAt", .double)
            table.add(column: "askedBegin", .double)
        }
    }

    private static func addContinuedProcessing(_ database: Database) throws {
        try database.alter(table: "control") { table in
            for number in ["askerPID", "askerStart"] { table.add(column: number, .integer) }
        }
        try database.alter(table: "request") { table in
            for text in ["title", "subtitle"] { table.add(column: text, .text) }
            for number in ["hostPID", "hostStart", "strategy", "resources", "submittedInLaunch"] {
                table.add(column: number, .integer)
            }
        }
        try database.alter(table: "launch") { table in
            for text in ["title", "subtitle"] { table.add(column: text, .text) }
            for number in ["hostStart", "progressDone", "progressTotal", "noticeID"] { table.add(column: number, .integer) }
            table.add(column: "progressAt", .double)
        }
    }

    /// Adds an index for each query about transfers: the next transfers, the transfers that must fail, and the transfers to
    /// remove. With an index, the cost of a query does not depend on the number of rows.
    private static func addTransferQueues(_ database: Database) throws {
        try database.alter(table: "transfer") { table in
            table.add(column: "host", .text).notNull().defaults(to: "")
            table.add(column: "hostLimit", .integer).notNull().defaults(to: 6)
            table.add(column: "priority", .double).notNull().defaults(to: 0.5)
            // The bits of this column are the bits of `TransferNeeds`.
            table.add(column: "needs", .integer).notNull().defaults(to: 0)
            table.add(column: "isSuspended", .boolean).notNull().defaults(to: false)
            table.add(column: "launchesApp", .boolean).notNull().defaults(to: true)
            table.add(column: "isFinishing", .boolean).notNull().defaults(to: false)
            table.add(column: "furthest", .integer).notNull().defaults(to: 0)
            for text in ["taskKind", "destination", "expectedSHA256", "resumeToken"] { table.add(column: text, .text) }
            for number in ["rateLimit", "expectedToSend", "expectedToReceive", "resumedAt"] {
                table.add(column: number, .integer)
            }
            for date in ["earliestBegin", "keptUntil"] { table.add(column: date, .double) }
            table.add(column: "giveUpAt", .double).generatedAs(sql: "lastProgressAt + resourceTimeout", .virtual)
        }
        try database.execute(
            sql: """
                CREATE INDEX transferQueue ON transfer (needs, priority DESC, id, host, hostLimit)
                    WHERE state = 'queued' AND isSuspended = 0;
                CREATE INDEX transferHost ON transfer (host, needs, priority DESC, id, hostLimit)
                    WHERE state = 'queued' AND isSuspended = 0;
                CREATE INDEX transferWaiting ON transfer (nextAttemptAt) WHERE state = 'waiting' AND isSuspended = 0;
                CREATE INDEX transferGiveUp ON transfer (giveUpAt)
                    WHERE state IN ('queued', 'running', 'waiting') AND isSuspended = 0;
                CREATE INDEX transferUnwanted ON transfer (adoptableUntil) WHERE isAdopted = 0 AND adoptableUntil IS NOT NULL;
                CREATE INDEX transferLeftBody ON transfer (id, bodyFile) WHERE state = 'cancelled' AND bodyFile IS NOT NULL;
                CREATE INDEX transferKept ON transfer (keptUntil) WHERE keptUntil IS NOT NULL;
                CREATE INDEX transferToken ON transfer (resumeToken) WHERE resumeToken IS NOT NULL;
                CREATE INDEX transferFinished ON transfer (finishedAt) WHERE finishedAt IS NOT NULL;
                CREATE INDEX transferSession ON transfer (session, state);
                """)
    }

    /// Adds the maximum duration of a transfer, and the rule for an existing file at the destination of a download.
    private static func addPatience(_ database: Database) throws {
        try database.alter(table: "transfer") { table in
            for number in ["triedSince", "patience"] { table.add(column: number, .double) }
            table.add(column: "mayReplace", .boolean).notNull().defaults(to: false)
            table.add(column: "lateAt", .double).generatedAs(sql: "triedSince + patience", .virtual)
        }
        try database.execute(
            sql: """
                CREATE INDEX transferLate ON transfer (lateAt)
                    WHERE lateAt IS NOT NULL AND state IN ('queued', 'running', 'waiting') AND isSuspended = 0
                """)
    }

    /// Adds the columns for claims of events. Two processes can have a delegate for the same session. The process that has
    /// claimed an event delivers the event.
    private static func addEventClaims(_ database: Database) throws {
        try database.alter(table: "sessionEvent") { table in
            for number in ["claimPID", "claimStart"] { table.add(column: number, .integer) }
            table.add(column: "launchesApp", .boolean).notNull().defaults(to: true)
            // The value is 1 if the agent has removed its own copy of the file.
            table.add(column: "isSettled", .boolean).notNull().defaults(to: false)
        }
        try database.execute(
            sql: """
                CREATE INDEX sessionEventWaiting ON sessionEvent (session, id) WHERE deliveredAt IS NULL;
                CREATE INDEX sessionEventUnsettled ON sessionEvent (transfer) WHERE deliveredAt IS NOT NULL AND isSettled = 0;
                CREATE INDEX sessionEventLaunching ON sessionEvent (session, id, createdAt)
                    WHERE deliveredAt IS NULL AND launchesApp = 1;
                CREATE INDEX sessionEventTransfer ON sessionEvent (transfer);
                """)
    }

    private static func createFacts(_ database: Database) throws {
        try database.create(table: "fact") { table in
            table.primaryKey("name", .text)
            table.column("value", .text).notNull()
        }
        try database.create(table: "control") { table in
            table.autoIncrementedPrimaryKey("id")
            table.column("verb", .text).notNull()
            table.column("argument", .text).notNull()
            table.column("createdAt", .double).notNull()
            table.column("answer", .text)
        }
    }

    private static func createScheduling(_ database: Database) throws {
        try database.create(table: "request") { table in
            table.primaryKey("identifier", .text)
            table.column("token", .text).notNull()
            table.column("kind", .text).notNull()
            table.column("earliestBegin", .double)
            table.column("recurrence", .text)
            table.column("occurrence", .double)
            table.column("spread", .double).notNull()
            table.column("missed", .text).notNull()
            table.column("requiresNetwork", .boolean).notNull()
            table.column("requiresExternalPower", .boolean).notNull()
            table.column("submittedAt", .double).notNull()
            table.column("failures", .integer).notNull()
            table.column("backoffUntil", .double)
            table.column("beginAfterRetry", .double)
        }
        try database.create(table: "launch") { table in
            table.autoIncrementedPrimaryKey("id")
            table.column("kind", .text).notNull()
            table.column("identifier", .text).notNull()
            table.column("requestToken", .text)
            table.column("generation", .integer).notNull()
            table.column("reason", .text).notNull()
            table.column("simulated", .boolean).notNull()
            table.column("servedOccurrence", .double)
            table.column("pid", .integer)
            table.column("startedAt", .double).notNull()
            table.column("stopReason", .text)
            table.column("isPersonChoosing", .boolean).notNull()
            table.column("result", .text)
            table.column("endedAt", .double)
            table.column("outcome", .text)
            table.column("detail", .text)
        }
        try database.create(index: "launchLive", on: "launch", columns: ["endedAt"])
    }

    private static func createTransfers(_ database: Database) throws {
        try database.create(table: "transfer") { table in
            table.autoIncrementedPrimaryKey("id")
            for text in ["session", "key", "kind", "method", "url", "headers", "state"] {
                table.column(text, .text).notNull()
            }
            for text in [
                "taskDescription", "upload", "bodyFile", "file", "partial", "uploadState", "head", "note", "sha256",
                "sourceSHA256", "sourceName", "errorMessage",
            ] { table.column(text, .text) }
            for number in ["bytesDone", "bytesOnWire", "attempts", "fruitlessAttempts", "attemptNumber"] {
                table.column(number, .integer).notNull()
            }
            table.column("taskIdentifier", .integer).notNull()
            table.column("bytesTotal", .integer)
            table.column("errorCode", .integer)
            table.column("maximumBodyBytes", .integer)
            table.column("isAdopted", .boolean).notNull()
            for date in ["createdAt", "lastProgressAt"] { table.column(date, .double).notNull() }
            for date in ["nextAttemptAt", "adoptableUntil", "finishedAt"] { table.column(date, .double) }
            for seconds in ["idleTimeout", "resourceTimeout"] { table.column(seconds, .double).notNull() }
        }
        try database.create(index: "transferKey", on: "transfer", columns: ["session", "key"])
        try database.create(index: "transferState", on: "transfer", columns: ["state"])
        try database.create(table: "waiter") { table in
            table.autoIncrementedPrimaryKey("id")
            table.column("transfer", .integer).notNull().indexed().references("transfer", onDelete: .cascade)
            table.column("pid", .integer).notNull()
            table.column("processStart", .integer).notNull()
        }
        try database.create(table: "sessionEvent") { table in
            table.autoIncrementedPrimaryKey("id")
            table.column("session", .text).notNull()
            table.column("transfer", .integer).notNull().references("transfer", onDelete: .cascade)
            table.column("createdAt", .double).notNull()
            table.column("deliveredAt", .double)
        }
        try database.create(table: "attachment") { table in
            table.autoIncrementedPrimaryKey("id")
            table.column("session", .text).notNull()
            table.column("pid", .integer).notNull()
            table.column("processStart", .integer).notNull()
        }
    }

    private static func createNotifications(_ database: Database) throws {
        try database.create(table: "notification") { table in
            table.primaryKey("identifier", .text)
            table.column("content", .text).notNull()
            table.column("state", .text).notNull()
            table.column("createdAt", .double).notNull()
            table.column("dueAt", .double)
            table.column("deliveredAt", .double)
            table.column("endedAt", .double)
            table.column("serverID", .integer)
            table.column("trouble", .text)
            table.column("revision", .integer).notNull()
        }
        try database.create(table: "notificationCategory") { table in
            table.primaryKey("identifier", .text)
            table.column("actions", .text).notNull()
        }
        try database.create(table: "notificationResponse") { table in
            table.autoIncrementedPrimaryKey("id")
            table.column("notification", .text).notNull()
            table.column("action", .text).notNull()
            table.column("content", .text).notNull()
            table.column("createdAt", .double).notNull()
            table.column("deliveredAt", .double)
        }
    }

    /// Adds the names of stored uploads. Before each PUT request, the agent checks whether a name is already in use. The cost of
    /// this check must not depend on the number of uploads in the folder. SQLite computes the two columns. The columns are `NULL`
    /// if the receipt is not valid JSON.
    private static func addStoredNames(_ database: Database) throws {
        try database.alter(table: "transfer") { table in
            table.add(column: "storedURL", .text).generatedAs(
                sql: "CASE WHEN json_valid(receipt) THEN json_extract(receipt, '$.url') END", .virtual)
            // The column contains the text after the last slash of the address.
            table.add(column: "storedName", .text).generatedAs(
                sql: "lower(replace(storedURL, rtrim(storedURL, replace(storedURL, '/', '')), ''))", .virtual)
        }
        try database.execute(
            sql: """
                CREATE INDEX transferStored ON transfer (url, storedName)
                    WHERE kind = 'upload' AND state = 'completed' AND receipt IS NOT NULL
                """)
    }
}
