mod judged;
