import assert from 'node:assert/strict';
import { it } from 'node:test';
import { environmentOf, readConfig } from '../../infra/config.ts';

it('another process reads the same config from environmentOf', () => {
  const config = readConfig({
    TEMPER_HOME: '/tmp/some-home',
    TEMPER_TEMPORAL_PORT: '7400',
    TEMPER_POLICY_PORT: '8700',
    TEMPER_METRICS_PORT: '9464',
    TEMPER_SANDBOX: 'local',
    TEMPER_TASK_ROOTS: '/a,/b',
    TEMPER_UPSTREAMS: '/etc/upstreams.json',
    TEMPER_ENGINE: 'sglang',
    TEMPER_ENGINE_URLS: 'http://one:1,http://two:2',
    TEMPER_ENGINE_CAPACITY: '24',
    TEMPER_ENGINE_HOLD: '900',
    TEMPER_ENGINE_SEEDS: 'off',
    TEMPER_TRAINER_REDUCTION: 'datum-mean',
    TEMPER_TRAINER_REQUEST_TOKENS: '20000',
    XDG_CACHE_HOME: '/tmp/some-cache',
  });
  const read = readConfig(environmentOf(config));
  assert.deepEqual({ ...read, env: config.env }, config);
});

it('a wrong setting is named with what was expected and what it holds', () => {
  assert.throws(() => readConfig({ TEMPER_POLICY_PORT: 'eighty' }), /TEMPER_POLICY_PORT: .*expected.*got "eighty"/s);
});
