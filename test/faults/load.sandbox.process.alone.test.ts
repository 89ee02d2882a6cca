import { describeLoad } from './load-suite.ts';

describeLoad('on a host with two lanes', { sandbox: 'local', agents: 100, lanes: 2 });
describeLoad('while the host worker is killed', { sandbox: 'local', agents: 20, lanes: 2, killsHost: true });
