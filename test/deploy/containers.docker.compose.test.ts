import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import type { HostRow } from '../../workers/cli/stack/hosts.ts';
import { buildServicesImage, buildTemperImage } from '../helpers/deploy/images.ts';
import { locateCompose } from '../helpers/deploy/tools.ts';
import { repositoryRoot } from '../helpers/sources.ts';
import { until } from '../helpers/until.ts';

const run = promisify(execFile);
const file = join(repositoryRoot, 'infra/deploy/compose.yaml');
const project = `temper-test-${randomBytes(3).toString('hex')}`;
const [temperImage, servicesImage] = ['temper-test:temper', 'temper-test:services'];
const options = { env: process.env, progress: (line: string) => console.error(line) };
const hosts = ['host-1', 'host-2', 'host-3'];
const secret = (): string => randomBytes(32).toString('hex');
const limitMs = 600_000;

/** Lists what Docker has of the project, of one kind. */
const left = async (kind: 'container' | 'network' | 'volume'): Promise<string[]> => {
  const all = kind === 'container' ? ['--all'] : [];
  const filter = ['--filter', `label=com.docker.compose.project=${project}`, '--quiet'];
  const { stdout } = await run('docker', [kind, 'ls', ...all, ...filter]);
  return stdout.split('\n').filter(Boolean);
};

describe('the stack of infra/deploy/compose.yaml', () => {
  let compose: (...words: readonly string[]) => Promise<string>;
  const temper = (...words: readonly string[]) => compose('exec', '--no-TTY', 'control', 'temper', ...words);

  before(async () => {
    const program = await locateCompose(options);
    await buildTemperImage(temperImage);
    await buildServicesImage(servicesImage, options);
    const env = {
      ...process.env,
      TEMPER_IMAGE: temperImage,
      POSTGRES_IMAGE: servicesImage,
      TEMPORAL_IMAGE: servicesImage,
      TEMPORAL_TOOLS_IMAGE: servicesImage,
      STORE_IMAGE: servicesImage,
      POSTGRES_PASSWORD: secret(),
      STORE_SECRET: secret(),
      STACK_KEY: secret(),
      TEMPER_ENGINE_API_KEY: secret(),
      TEMPER_TRAINER_API_KEY: secret(),
      TEMPER_HOST_LOST_AFTER: '30',
    };
    compose = async (...words) => {
      const { stdout } = await run(program, ['--project-name', project, '--file', file, ...words], { env });
      return stdout;
    };
    await until(isUp, limitMs);
  });
  after(async () => {
    await compose?.('down', '--volumes', '--timeout', '1');
  });

  /** Starts what does not run yet. A busy machine may give a part no time for its first answer. */
  const isUp = (): Promise<boolean> =>
    compose('up', '--detach', '--wait', '--no-build').then(
      () => true,
      (error: Error) => {
        if (error.message.includes('is unhealthy')) return false;
        throw error;
      },
    );

  it('has three hosts', async () => {
    // One whose machine stands still is silent for a while.
    const rows = await until(async () => {
      const all = await hostRows();
      return all.every(({ state }) => state === 'working') && all;
    });
    assert.deepEqual(
      rows.map(({ name }) => name),
      hosts,
    );
  });

  it('ends a training run of which it loses a host', { timeout: limitMs }, async () => {
    const shape = ['--tasks', 'generated:train/3', '--steps', '3', '--groups', '2', '--rollouts', '3'];
    await temper('train', '--id', 'demo', ...shape, '--detach');
    await until(async () => (await hostRows()).every(({ taken }) => taken > 0), limitMs);
    await compose('kill', 'host-2');
    await temper('host', 'forget', 'host-2', '--yes', '--force');
    await until(async () => JSON.parse(await temper('show', 'demo', '--json')).phase === 'done', limitMs);
  });

  it('leaves nothing behind', async () => {
    await compose('down', '--volumes', '--timeout', '30');
    assert.deepEqual([await left('container'), await left('network'), await left('volume')], [[], [], []]);
  });

  async function hostRows(): Promise<readonly HostRow[]> {
    return JSON.parse(await temper('host', 'list', '--json'));
  }
});
