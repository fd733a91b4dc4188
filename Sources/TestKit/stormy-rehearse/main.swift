import Rehearsal

RehearsalTool.main()
