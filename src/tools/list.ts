/** Lists all built-in tools in the order in which the model sees them. */

import type { Clock, Tool } from '../runtime/port.ts'
import type { ChildEnvironment } from '../sandbox/contract.ts'
import type { Workspace } from '../workspace/contract.ts'
import { type Ask, askUser } from './builtin/ask_user.ts'
import { fileDelete } from './builtin/file_delete.ts'
import { fileEdit } from './builtin/file_edit.ts'
import { fileList } from './builtin/file_list.ts'
import { fileRead } from './builtin/file_read.ts'
import { fileWrite } from './builtin/file_write.ts'
import { type Get, http } from './builtin/http.ts'
import { memorySearch, type Search } from './builtin/memory_search.ts'
import { pdfExtract } from './builtin/pdf_extract.ts'
import { type ReadResult, resultRead } from './builtin/result_read.ts'
import { type ScheduleInChat, schedule } from './builtin/schedule.ts'
import { search } from './builtin/search.ts'
import { type ShellPlan, shell } from './builtin/shell.ts'
import { type Jobs, shellOutput, shellStop } from './builtin/shell_output.ts'
import { time } from './builtin/time.ts'
import type { Spawn } from './process.ts'
import { type ShellTimes, type ToolKind, toolFrom } from './tool-kind.ts'

/** The dependencies through which tools reach files, processes, the network and the user. */
export type ToolDeps = {
  readonly files: Omit<Workspace, 'writeBytes' | 'previewEdit'>
  readonly spawn: Spawn
  readonly planOf: (planHash: string) => ShellPlan | undefined
  /** Absent: no command runs in the background. */
  readonly jobs?: Jobs
  readonly env: ChildEnvironment
  readonly shellTimes: ShellTimes
  readonly get: Get
  readonly search: Search
  readonly ask?: Ask
  readonly now: Clock
  /** Limit of what a command's output is collected; the model sees less of it. */
  readonly maxOutputBytes: number
  /** Limit of what the model sees of one result, in bytes. */
  readonly shownBytes: () => number
  readonly result: ReadResult
  /** Absent: nobody can be answered later. */
  readonly scheduleInChat?: ScheduleInChat | undefined
}

export const toolKinds: readonly ToolKind<Tool['parameters'], ToolDeps>[] = [
  time,
  fileList,
  fileRead,
  fileWrite,
  fileEdit,
  fileDelete,
  search,
  pdfExtract,
  shell,
  shellOutput,
  shellStop,
  http,
  memorySearch,
  schedule,
  resultRead,
  askUser,
]

export function createTools(deps: ToolDeps): Tool[] {
  return toolKinds.map((kind) => toolFrom(kind, deps, deps.shellTimes))
}
