import StormyCommand

StormyTool.main()
