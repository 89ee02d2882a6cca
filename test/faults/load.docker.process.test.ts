import { describeLoad } from './load-suite.ts';

const delays = { share: 0.3, ms: 5_000 };

// The stages of a rollout wait for more than a minute for such a daemon: two lanes would need half a minute for each rollout.
describeLoad('while the Docker daemon is slow', { sandbox: 'docker', agents: 10, lanes: 8, delays });
