import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { parse } from 'yaml';
import { readConfig } from '../../../infra/settings/config.ts';
import { environment } from '../../../infra/settings/environment.ts';
import { repositoryRoot } from '../../helpers/sources.ts';

const directory = join(repositoryRoot, 'infra/deploy');
const read = (path: string): string => readFileSync(join(directory, path), 'utf8');
const compose = parse(read('compose.yaml'), { merge: true }) as {
  readonly services: Readonly<Record<string, Service>>;
  readonly volumes: Readonly<Record<string, null>>;
};

interface Service {
  readonly environment?: Readonly<Record<string, unknown>>;
  readonly command: readonly string[];
  readonly volumes?: readonly string[];
}

/** Compose's variables that are no settings of temper. */
const ofComposeAlone = ['TEMPER_IMAGE', 'TEMPER_TRAINER_PARTS'];
const secrets = ['POSTGRES_PASSWORD', 'STORE_SECRET', 'STACK_KEY', 'TEMPER_ENGINE_API_KEY', 'TEMPER_TRAINER_API_KEY'];

describe('the deployables', () => {
  it('name settings that temper reads', () => {
    const templates = readdirSync(join(directory, 'chart/templates')).map((name) => join('chart/templates', name));
    for (const file of ['compose.yaml', 'image/Dockerfile', 'chart/values.yaml', ...templates]) {
      const named = read(file).match(/\bTEMPER_[A-Z0-9_]+/g) ?? [];
      const unknown = named.filter((name) => !(name in environment.shape) && !ofComposeAlone.includes(name));
      assert.deepEqual(unknown, [], file);
    }
  });

  it('give temper settings that it accepts', () => {
    const processes = Object.entries(compose.services).filter(([, { command }]) => command?.[0] === 'up');
    assert.deepEqual(
      processes.map(([name]) => name),
      ['control', 'trainer', 'host-1', 'host-2', 'host-3'],
    );
    for (const [name, service] of processes) {
      const { listen, listenTls, store } = readConfig(resolved(service.environment));
      assert.equal(store.kind, 's3');
      assert.deepEqual([listen, listenTls === null], name === 'trainer' ? ['0.0.0.0', false] : ['127.0.0.1', true]);
    }
  });

  it('give each process of temper a volume of its own, all hosts one for their journals, and all one for the certificate', () => {
    const users = (volume: string): string[] =>
      Object.entries(compose.services).flatMap(([name, { volumes = [] }]) =>
        volumes.some((one) => one.startsWith(`${volume}:`)) ? [name] : [],
      );
    const { journals, certificate, ...own } = Object.fromEntries(
      Object.keys(compose.volumes).map((name) => [name, users(name)]),
    );
    const hosts = ['host-1', 'host-2', 'host-3'];
    assert.deepEqual([journals, certificate], [hosts, ['control', 'trainer', 'certificate', ...hosts]]);
    // The service that makes the certificate leaves its key with the trainer alone.
    assert.deepEqual(own.trainer, ['trainer', 'certificate']);
    assert.ok(Object.entries(own).every(([name, by]) => name === 'trainer' || by.length === 1));
    for (const { environment: settings = {}, volumes = [] } of Object.values(compose.services)) {
      const shared = volumes.filter((one) => one.startsWith('journals:')).map((one) => one.split(':')[1]);
      assert.deepEqual([settings.TEMPER_JOURNALS].filter(Boolean), shared);
    }
  });

  it('hold no secret, and refuse to start without one', () => {
    for (const name of secrets) {
      assert.match(read('compose.yaml'), new RegExp(`\\$\\{${name}:\\?`));
    }
  });

  it('take every setting as a value of the chart, but for those that hold a secret', () => {
    const { properties } = JSON.parse(read('chart/values.schema.json'));
    for (const { patternProperties } of [properties.settings, properties.hosts.properties.settings]) {
      const known = new RegExp(Object.keys(patternProperties).join('|'));
      assert.deepEqual(
        Object.keys(environment.shape).filter((name) => !known.test(name)),
        [],
      );
    }
    const [, pattern = assert.fail()] = /regexMatch "([^"]+)"/.exec(read('chart/templates/_checks.tpl')) ?? [];
    const others = ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY', 'TEMPORAL_API_KEY', 'TEMPORAL_TLS_CLIENT_KEY_DATA'];
    const names = [...Object.keys(environment.shape), ...others];
    assert.deepEqual(
      names.filter((name) => new RegExp(pattern).test(name) && !name.endsWith('_FILE')).sort(),
      [
        ...others,
        'E2B_API_KEY',
        'HF_TOKEN',
        'TEMPER_ENGINE_API_KEY',
        'TEMPER_METRICS_TOKEN',
        'TEMPER_OPENENV_TOKEN',
        'TEMPER_STACK_KEY',
        'TEMPER_TRAINER_API_KEY',
      ].sort(),
    );
  });

  it('have the version of the package', () => {
    const { version } = JSON.parse(readFileSync(join(repositoryRoot, 'package.json'), 'utf8'));
    const chart = parse(read('chart/Chart.yaml'));
    assert.deepEqual([chart.version, chart.appVersion], [version, version]);
  });
});

/** Puts the defaults of Compose's variables in place, and something for those without one. */
function resolved(variables: Service['environment'] = {}): Record<string, string> {
  const of = (value: unknown): string =>
    String(value).replaceAll(/\$\{([A-Z_]+):([?-])([^}]*)\}/g, (_, name, kind, text) =>
      kind === '-' ? text : name === 'STACK_KEY' ? 'a'.repeat(64) : 'secret',
    );
  // Compose passes on a variable without a value, if it is set.
  const given = Object.entries(variables).filter(([, value]) => value !== null);
  return Object.fromEntries(given.map(([name, value]) => [name, of(value)]));
}
