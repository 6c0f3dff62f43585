/** All built-in tools, by hand and in the order the model sees them. */

import type { Clock, Tool } from '../runtime/port.ts'
import { type Ask, askUserTool } from './builtin/ask_user.ts'
import { fileEditTool } from './builtin/file_edit.ts'
import { fileListTool } from './builtin/file_list.ts'
import { fileReadTool } from './builtin/file_read.ts'
import { fileWriteTool } from './builtin/file_write.ts'
import type { Files } from './builtin/files.ts'
import { type Get, httpTool } from './builtin/http.ts'
import { memorySearchTool, type Search } from './builtin/memory_search.ts'
import { searchTool } from './builtin/search.ts'
import { type ShellPlan, shellTool } from './builtin/shell.ts'
import { timeTool } from './builtin/time.ts'
import type { Environment, Spawn } from './process.ts'
import type { ShellTimes } from './specs.ts'

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
