import logging
from datetime import datetime, UTC

logger = logging.getLogger(__name__)

def log_workflow_start(context_variables):
    """Log workflow start with context details."""
    workflow = context_variables.data.get('workflow_name', 'unknown')
    chat_id = context_variables.data.get('chat_id', 'unknown')
    user_id = context_variables.data.get('user_id', 'unknown')
    
    logger.info(
        f"🚀 Workflow started: {workflow} | chat={chat_id} | user={user_id} | "
        f"timestamp={datetime.now(UTC).isoformat()}"
    )
    
    # Set initialization timestamp in context
    context_variables.data['workflow_start_time'] = datetime.now(UTC).isoformat()
