import type { DataSetFormat } from '../data-set.ts';
import { harbor } from './harbor.ts';
import { ownModule } from './module.ts';
import { multiSweBench } from './multi-swe-bench.ts';
import { openInstruct } from './open-instruct.ts';
import { openenv } from './openenv.ts';
import { slime } from './slime/index.ts';
import { slimeSweBench, sweBench, sweGym } from './swe-bench/index.ts';
import { sweRebench, sweRebenchV2 } from './swe-rebench.ts';
import { sweSmith } from './swe-smith.ts';
import { terminalBench } from './terminal-bench/index.ts';

/** All formats by the name with which an address begins. To add one, add a file or folder here and a line in this table. */
export const dataSetFormats = {
  harbor,
  'swe-bench': sweBench,
  'swe-gym': sweGym,
  'swe-smith': sweSmith,
  'swe-rebench': sweRebench,
  'swe-rebench-v2': sweRebenchV2,
  'multi-swe-bench': multiSweBench,
  'open-instruct': openInstruct,
  slime,
  'slime-swe-bench': slimeSweBench,
  'terminal-bench': terminalBench,
  openenv,
  module: ownModule,
} as const satisfies Record<string, DataSetFormat>;

export type DataSetFormatName = keyof typeof dataSetFormats;

export const isDataSetFormat = (name: string): name is DataSetFormatName => Object.hasOwn(dataSetFormats, name);
