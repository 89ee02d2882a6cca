import { startProductionServer } from '../helpers/temporal/production/server.ts';
import { describeKills } from './kill-suite.ts';

describeKills('local', 8, { server: startProductionServer });
