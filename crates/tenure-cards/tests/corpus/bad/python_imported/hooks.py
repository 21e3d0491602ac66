from other import begin as start
