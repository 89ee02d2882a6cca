import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { type Config, readConfig } from '../../../infra/settings/config.ts';
import { freePort, isPortFree } from '../../../infra/temporal/ports.ts';
import { withFreePorts } from '../../../workers/up/ports.ts';
import { startStack } from '../../../workers/up/start-stack.ts';
import { certificateAt, createCertificate, fingerprintOf } from '../../helpers/certificate.ts';
import { repositoryRoot } from '../../helpers/sources.ts';
import { until } from '../../helpers/until.ts';

const everywhere = '0.0.0.0';
const keys = {
  TEMPER_ENGINE_API_KEY: 'key-of-the-engine',
  TEMPER_TRAINER_API_KEY: 'key-of-the-trainer',
  TEMPER_METRICS_TOKEN: 'token-of-prometheus',
};

/** A client in a process of its own, which trusts what NODE_EXTRA_CA_CERTS names. It prints the answers. */
const client = `
  import { createTinkerTrainer } from './infra/trainer/tinker.ts';
  import { createVllmEngine } from './infra/engine/vllm.ts';
  const [url, checkpointsDir, metrics] = process.argv.slice(1);
  const { TEMPER_ENGINE_API_KEY, TEMPER_TRAINER_API_KEY, TEMPER_METRICS_TOKEN } = process.env;
  await createVllmEngine({ url, model: 'policy', method: 'reload', apiKey: TEMPER_ENGINE_API_KEY }).health();
  const options = { url, baseModel: 'policy', reduction: 'sum', checkpointsDir, apiKey: TEMPER_TRAINER_API_KEY };
  await createTinkerTrainer(options).createModel({ loraRank: 1, seed: 0 });
  const scraped = await fetch(metrics, { headers: { authorization: 'Bearer ' + TEMPER_METRICS_TOKEN } });
  console.log(scraped.status, (await scraped.text()).includes('temporal_'));
`;

describe('a stack that listens on a network', () => {
  let config: Config;
  let files: { readonly TEMPER_LISTEN_CERT: string; readonly TEMPER_LISTEN_KEY: string };
  const renew = async (): Promise<string> => {
    const { cert, key } = await createCertificate('127.0.0.1');
    await writeFile(files.TEMPER_LISTEN_CERT, cert);
    await writeFile(files.TEMPER_LISTEN_KEY, key, { mode: 0o600 });
    return fingerprintOf(cert);
  };
  before(async () => {
    const home = await mkdtemp(join(tmpdir(), 'temper-listen-'));
    files = { TEMPER_LISTEN_CERT: join(home, 'tls.crt'), TEMPER_LISTEN_KEY: join(home, 'tls.key') };
    await renew();
    const env = { ...withoutTemporal(), ...keys, ...files, TEMPER_HOME: home, TEMPER_LISTEN: everywhere };
    const metrics = { TEMPER_METRICS_LISTEN: everywhere, TEMPER_METRICS_PORT: String(await threeFreePorts()) };
    config = await withFreePorts(readConfig({ ...env, ...metrics, NODE_EXTRA_CA_CERTS: files.TEMPER_LISTEN_CERT }));
  });
  after(() => rm(config.home, { recursive: true, force: true }));

  it('serves policy and metrics by TLS alone, to clients that trust its certificate and have its keys, and a renewed one later', async () => {
    const stack = await startStack({ config, parts: ['temporal', 'policy', 'control'] }, new AbortController().signal);
    try {
      const metrics = `https://127.0.0.1:${config.metricsPorts?.control}/metrics`;
      const words = ['--input-type=module', '--eval', client, '--', config.policyUrl, config.home, metrics];
      const ask = async (trust: NodeJS.ProcessEnv) => {
        const options = { cwd: repositoryRoot, env: { PATH: config.env.PATH, ...keys, ...trust } };
        return (await promisify(execFile)(process.execPath, words, options)).stdout.trim();
      };
      assert.equal(await ask({ NODE_EXTRA_CA_CERTS: config.env.NODE_EXTRA_CA_CERTS }), '200 true');
      await assert.rejects(ask({}), /self-signed certificate/);
      await assert.rejects(fetch(`${config.policyUrl.replace('https', 'http')}/health`));
      const renewed = await renew();
      for (const url of [config.policyUrl, metrics]) await until(async () => (await certificateAt(url)) === renewed);
    } finally {
      await stack.close();
    }
  });
});

async function threeFreePorts(): Promise<number> {
  for (;;) {
    const first = await freePort(everywhere);
    const others = await Promise.all([isPortFree(first + 1, everywhere), isPortFree(first + 2, everywhere)]);
    if (others.every(Boolean)) return first;
  }
}

/** Returns the environment without a Temporal server, so that the stack starts its own. */
function withoutTemporal() {
  const names = Object.keys(process.env).filter((name) => !name.startsWith('TEMPORAL_'));
  const env = Object.fromEntries(names.map((name) => [name, process.env[name]]));
  return { ...env, TEMPORAL_CONFIG_FILE: '/nonexistent/temporal.toml' };
}
