import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { createE2bProvider } from '../../../../infra/sandbox/e2b/provider.ts';
import { templateNameOf } from '../../../../infra/sandbox/e2b/templates.ts';
import { keeperDirectory } from '../../../../infra/sandbox/shell/scripts.ts';
import { startE2bServer } from '../../../helpers/e2b/server.ts';
import { e2bSettings } from '../../../helpers/e2b/settings.ts';
import { sandboxContract } from '../contract.ts';
import { runtime } from '../contract-processes.ts';

const image = 'temper-tasks:bookworm';
const template = { image, cpuCount: 2, memoryMB: 1_024, programs: [runtime] };
const server = await startE2bServer({ templates: { [templateNameOf(image)]: template } });
const home = mkdtempSync(join(tmpdir(), 'e2b-home-'));
// The contract's worker process finds the server here.
process.env.TEMPER_E2B_URL = server.url;
process.env.E2B_API_KEY = server.key;
after(async () => {
  await server.close();
  rmSync(home, { recursive: true });
});

sandboxContract({
  title: 'e2b sandboxes',
  image,
  root: home,
  open: (stack) => createE2bProvider({ stack, ...e2bSettings(server, home) }),
  killRecorder: async (sandbox, key) => {
    const [id] = server.ids(sandbox);
    const script = `kill -9 $(cat ${keeperDirectory}/${key}/pid)`;
    spawnSync('docker', ['exec', `e2b-${id}`, 'sh', '-c', script]);
  },
  scriptsChecked: true,
  evidence: ['disk'],
});
