tenure run agent.md -m go --trust
for command in 'show last' 'events last' 'export last' 'tail last'; do timeout 20 tenure $command; done
