import BackgroundAgentTool

BackgroundAgentTool.run()
