import { cheatsInContainers, honestInContainers } from './containers.ts';
import { tryAll } from './suite.ts';
import { winningInContainers } from './winning.ts';

tryAll('docker', { cheats: cheatsInContainers, winning: winningInContainers, honest: honestInContainers });
