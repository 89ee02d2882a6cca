import { pathSuite } from './path-suite.ts';

pathSuite({ kind: 'docker', in: 'image' });
