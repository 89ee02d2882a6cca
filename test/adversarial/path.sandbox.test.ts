import { pathSuite } from './path-suite.ts';

pathSuite({ kind: 'local', in: 'environment', hasPath: false });
