import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { createE2bProvider } from '../../../../infra/sandbox/e2b/provider.ts';
import { templateNameOf } from '../../../../infra/sandbox/e2b/templates.ts';
import { startE2bServer } from '../../../helpers/e2b/server.ts';
import { e2bSettings } from '../../../helpers/e2b/settings.ts';
import { faultContract } from '../contract-faults.ts';

const image = 'temper-tasks:bookworm';
const template = { image, cpuCount: 2, memoryMB: 1_024 };
const server = await startE2bServer({ templates: { [templateNameOf(image)]: template } });
const home = mkdtempSync(join(tmpdir(), 'e2b-home-'));
after(async () => {
  await server.close();
  rmSync(home, { recursive: true });
});

faultContract({
  title: 'E2B sandboxes',
  image,
  open: (stack) => createE2bProvider({ stack, ...e2bSettings(server, home) }),
  faults: {
    loseCreation: () => void server.createFaults.push('lost'),
    throttle: (times, retryAfterSec) => {
      for (let time = 0; time < times; time += 1) server.createFaults.push({ retryAfterSec });
    },
    retryAfter: true,
    lagLists: async () => server.freezeLists(),
    vanish: (name) => server.vanish(name),
    cutStreams: () => server.cutStreams(),
    endOf: async (name) => server.leaseEndMs(name),
    skewClock: (ms) => server.skewClock(ms),
  },
});
