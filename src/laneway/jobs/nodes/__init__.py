"""Jobs on other machines: a node is another home of Laneway, and its ledger and slots are the truth."""
