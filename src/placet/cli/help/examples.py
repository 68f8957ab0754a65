"""Lines to paste, at the end of the help of each command."""

EXAMPLES = {
    "aggregate": """
        placet aggregate votes.csv  # rank what is in a file of votes, ballots or ratings
        placet aggregate votes.csv --report page.html  # ... and write a page about it
        placet aggregate ballots.txt --method borda --out ranking.csv
        placet aggregate votes.csv --scale elo --anchor gpt=1000
        placet aggregate human=votes.csv judge=judged.jsonl --target human""",
    "audit": """
        placet audit ballots.txt  # which fairness criteria hold for these ballots
        placet audit ballots.txt --method irv --out checks.csv
        placet audit --method borda --items 4  # the theory alone, without data""",
    "diff": """
        placet aggregate january.csv --out january.json
        placet aggregate february.csv --out february.json
        placet diff january.json february.json  # what changed beyond chance""",
    "fragility": """
        placet fragility votes.csv  # the fewest votes that decide the first place
        placet fragility votes.csv --goal tiers --out decisive.csv
        placet fragility votes.csv --by voter --agent user
        placet fragility votes.csv --influence --agent user  # who pulls what, and who votes alike""",
    "verify": """
        placet aggregate votes.csv --certificate board.cert.json
        placet verify board.cert.json votes.csv  # 0: the same, 1: it differs, 2: cannot tell
        placet verify board.cert.json votes.csv --signature board.cert.json.sig --signers allowed_signers""",
    "next": """
        placet next board.json --goal top:3 --n 50 --out pairs.csv  # what to ask the voters
        placet next votes.csv --goal best
        placet next ballots.txt --goal order --size 4  # sets of four items to show""",
    "enough": """
        placet enough board.json --goal best  # may be looked at after every vote
        placet enough votes.csv --goal top:3 --margin 0.1
        placet enough votes.csv --goal above --item ant,bee --json""",
    "plan": """
        placet plan --items 12 --goal best  # about how many votes will be needed
        placet plan --items 20 --goal top:3 --gap 0.5
        placet plan --items 8 --goal order --gap 1 --runs 50 --json""",
    "methods": """
        placet methods  # every method, one line each
        placet methods bradley-terry  # one method with its parameters
        placet methods --json""",
    "serve": """
        placet serve votes.csv  # look at it in a browser
        placet serve --workspace polls  # with polls and uploads, kept in a folder
        placet serve --help""",
    "train": """
        placet train train.letor --valid valid.letor --out model.placet
        placet train rows.csv --qid query --label grade --out model.placet
        placet train train.letor --ranker trees --loss lambdarank --out model.placet
        placet train cases.csv --order order --out model.placet  # features of a case -> an order of labels""",
    "score": """
        placet score model.placet test.letor --out scores.txt
        placet score model.placet rows.csv --qid query
        placet score model.placet test.letor | head""",
    "evaluate": """
        placet evaluate scores.txt test.letor  # NDCG and others, with errors
        placet evaluate run.trec qrels.txt --metric ndcg@10,map
        placet evaluate run.trec --qrels human.txt --judged llm.txt  # few judgments of people, many of a judge""",
    "compare": """
        placet compare new.run old.run qrels.txt  # which is better, and is it beyond chance
        placet compare a.placet b.placet test.letor --metric ndcg@10
        placet compare new.run old.run qrels.txt --json""",
    "choice": """
        placet choice trips.csv  # what choices among alternatives depend on
        placet choice trips.csv --case income --price cost  # ... of whom, and in money
        placet choice answers.csv --agent person --classes 2""",
    "describe": """
        placet describe votes.csv  # what a file holds
        placet describe votes.csv --surprise --agent voter  # which voters agree with the rest
        placet describe ballots.txt --json""",
    "convert": """
        placet convert votes.csv votes.parquet
        placet convert ballots.txt ballots.csv
        placet convert votes.csv --a left --b right --winner better --out votes.jsonl""",
    "track": """
        placet simulate ranked-signals --out example  # a folder of tables to try it with
        placet track example/arrivals.csv --beacons example/beacons.csv --start 2,2 --sigma 0.02 --diffusion 0.001
        placet track arrivals.csv --beacons beacons.csv --start 57.5,105 --plot track.png""",
    "demo": """
        placet demo  # simulated votes, ballots and search results, and pages
        placet demo --out folder
        placet serve demo/votes.csv""",
    "completion": """
        placet completion bash >> ~/.bashrc
        placet completion zsh >> ~/.zshrc
        placet completion fish > ~/.config/fish/completions/placet.fish""",
    "simulate": """
        placet simulate battles --out votes.csv --items 6 --n 900
        placet simulate plackett-luce --out ballots.txt
        placet simulate COMMAND --help""",
    "simulate plackett-luce": """
        placet simulate plackett-luce --out ballots.txt  # 100 full orders of 10 items
        placet simulate plackett-luce --items 8 --n 500 --top 3 --out ballots.soc
        placet simulate plackett-luce --tiers 3 --subset 6 --out ballots.csv  # ties, and items left out""",
    "simulate ordered-partitions": """
        placet simulate ordered-partitions --out ballots.txt
        placet simulate ordered-partitions --items 6 --n 500 --form exact --out ballots.txt
        placet simulate ordered-partitions --spread 0 --out ballots.txt  # no item is better than another""",
    "simulate best-worst": """
        placet simulate best-worst --out choices.csv
        placet simulate best-worst --items 12 --shown 4 --n 300 --out choices.csv
        placet aggregate choices.csv""",
    "simulate mallows": """
        placet simulate mallows --out ballots.txt
        placet simulate mallows --phi 0.3 --n 50 --out ballots.txt  # voters who agree
        placet simulate mallows --phi 1 --out ballots.txt  # voters who do not""",
    "simulate battles": """
        placet simulate battles --out votes.csv
        placet simulate battles --items 6 --n 900 --first 0.3 --out votes.csv  # the side matters
        placet simulate battles --model bradley-terry --out votes.csv  # no ties""",
    "simulate judged-votes": """
        placet simulate judged-votes --out votes.csv
        placet simulate judged-votes --scale 0 --out votes.csv  # a judge who guesses
        placet aggregate votes.csv --source agent --target human""",
    "simulate benchmark-table": """
        placet simulate benchmark-table --out table.csv
        placet simulate benchmark-table --items 200 --tasks 40 --observed 0.3 --out table.csv
        placet aggregate table.csv""",
    "simulate ratings": """
        placet simulate ratings --out ratings.csv
        placet simulate ratings --items 50 --n 1000 --observed 0.2 --out ratings.csv
        placet aggregate ratings.csv""",
    "simulate queries": """
        placet simulate queries --out train.letor
        placet simulate queries --n 50 --seed 1 --out test.letor
        placet train train.letor --out model.placet""",
    "simulate choices": """
        placet simulate choices --out trips.csv
        placet simulate choices --n 400 --per-agent 5 --spread 0.5 --out trips.csv  # tastes differ
        placet choice trips.csv""",
    "simulate ranked-signals": """
        placet simulate ranked-signals --out example
        placet simulate ranked-signals --path spiral --steps 100 --out example
        placet simulate ranked-signals --emission unknown --out example""",
}
