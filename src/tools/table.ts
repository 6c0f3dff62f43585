/** All built-in tools, by hand and in the order the model sees them. */

import type { Clock, Tool } from '../runtime/port.ts'
import { type Ask, askUserTool } from './ask_user.ts'
import { fileEditTool } from './file_edit.ts'
import { fileListTool } from './file_list.ts'
import { fileReadTool } from './file_read.ts'
import { fileWriteTool } from './file_write.ts'
import type { Files } from './files.ts'
import { type Get, httpTool } from './http.ts'
import { memorySearchTool, type Search } from './memory_search.ts'
import type { Environment, Spawn } from './process.ts'
import { searchTool } from './search.ts'
import { type ShellPlan, shellTool } from './shell.ts'
import type { ShellTimes } from './specs.ts'
import { timeTool } from './time.ts'

export type ToolDeps = {
  readonly files: Files
  readonly spawn: Spawn
  readonly planOf: (planHash: string) => ShellPlan | undefined
  readonly env: Environment
  readonly shellTimes: ShellTimes
  readonly get: Get
  readonly search: Search
  readonly ask?: Ask
  readonly now: Clock
  /** Of each result; the executor is given the same. */
  readonly maxOutputBytes: number
}

export function createTools(deps: ToolDeps): Tool[] {
  return [
    timeTool(deps),
    fileListTool(deps),
    fileReadTool(deps),
    fileWriteTool(deps),
    fileEditTool(deps),
    searchTool(deps),
    shellTool(deps),
    httpTool(deps),
    memorySearchTool(deps),
    askUserTool(deps),
  ]
}
