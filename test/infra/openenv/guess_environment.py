"""Serves an environment with OpenEnv's own server: a number is to be guessed, which the seed determines."""

import sys

import uvicorn
from openenv.core.env_server import create_fastapi_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, Observation, State


class Guess(Action):
    guess: int


class Hint(Observation):
    hint: str


class GuessEnvironment(Environment):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self):
        super().__init__()
        self._secret = 0
        self._state = State()

    def reset(self, seed=None, episode_id=None, **_):
        self._secret = seed % 10
        self._state = State(episode_id=episode_id, step_count=0)
        return Hint(hint="guess a number from 0 to 9")

    def step(self, action, timeout_s=None, **_):
        self._state.step_count += 1
        if action.guess == self._secret:
            return Hint(hint="right", reward=1.0, done=True)
        return Hint(hint="higher" if action.guess < self._secret else "lower", reward=0.25)

    @property
    def state(self):
        return self._state


app = create_fastapi_app(GuessEnvironment, Guess, Hint, max_concurrent_envs=4)
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
