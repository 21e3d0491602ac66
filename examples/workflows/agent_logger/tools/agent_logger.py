import logging

logger = logging.getLogger(__name__)


def log_agent_start(ctx, context_variables):
    """Log the start of an agent's turn, and count it."""
    turns = context_variables.data.get("turns_started", 0) + 1
    context_variables.data["turns_started"] = turns
    logger.info(f"turn {turns} | agent={ctx.agent_name} | chat={context_variables.data['chat_id']}")
