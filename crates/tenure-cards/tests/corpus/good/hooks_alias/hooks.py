async def start_agent(ctx):
    ctx.state["started"] = True


alias = start_agent
