import { cheatsInContainers, honestInContainers } from './containers.ts';
import { testAgents } from './suite.ts';
import { winningInContainers } from './winning.ts';

testAgents('docker', { cheats: cheatsInContainers, winning: winningInContainers, honest: honestInContainers });
