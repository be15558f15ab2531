"""What a fault draws: random numbers, and variants from decks. All of it follows from the seed.

Half an hour has three faults of a kind: drawn one by one, most variants would never come. So each
comes once, in a shuffled order, before one comes again. Which one comes is a matter of how often
the fault came up, also where it could not be given: it must not depend on the machine's pace.
"""

import random

# The lost answer to an EndTxn is the classic among the faults of a transaction's network.
CLASSIC = "EndTxn"
FIRST = ("Produce", "InitProducerId", "TxnOffsetCommit")
LATER = ("AddPartitionsToTxn", "AddOffsetsToTxn")
APIS = (CLASSIC, *FIRST, *LATER)


class Draw(random.Random):
    """For one fault, at its `turn` in the run, counted from 0."""

    def __init__(self, run_seed, name, turn):
        super().__init__(f"{run_seed}/{name}/{turn}")
        self.run_seed = run_seed
        self.name = name
        self.turn = turn

    def again(self):
        """The same draw from its start, for a fault that could not be given."""
        return Draw(self.run_seed, self.name, self.turn)

    def deal(self, variants, turn=None):
        """The next card of this fault's deck."""
        times, place = divmod(self.turn if turn is None else turn, len(variants))
        shuffled = random.Random(f"{self.run_seed}/{self.name}/{variants}/{times}")
        return shuffled.sample(variants, len(variants))[place]

    def deal_api(self, action, actions):
        """The next kind of request for one of the actions, which all share a deck.

        They start at different ones, so that few turns of all make many pairs, and each has its
        EndTxn within three turns.
        """
        times, place = divmod(self.turn, len(APIS))
        shuffled = random.Random(f"{self.run_seed}/apis/{times}")
        number = shuffled.sample(actions, len(actions)).index(action)
        first, later = (
            _turned(shuffled.sample(apis, len(apis)), number) for apis in (FIRST, LATER)
        )
        # Those with the same order of the others have it at another place.
        first.insert((number + number // len(FIRST)) % len(FIRST), CLASSIC)
        return (first + later)[place]


def _turned(cards, by):
    by %= len(cards)
    return cards[by:] + cards[:by]
