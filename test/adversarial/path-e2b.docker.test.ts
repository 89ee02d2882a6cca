import { after } from 'node:test';
import { createE2bProvider } from '../../infra/sandbox/e2b/provider.ts';
import { templateNameOf } from '../../infra/sandbox/e2b/templates.ts';
import { startE2bServer } from '../helpers/e2b/server.ts';
import { e2bSettings } from '../helpers/e2b/settings.ts';
import { pathSuite } from './path-suite.ts';

const image = 'temper-tasks:bookworm';
const template = { image, cpuCount: 2, memoryMB: 1_024 };
const server = await startE2bServer({ templates: { [templateNameOf(image)]: template } });
after(() => server.close());

const open = (stack: string, home: string) => createE2bProvider({ stack, ...e2bSettings(server, home) });
pathSuite({ kind: 'e2b', open, in: 'environment', carriesChanges: false });
