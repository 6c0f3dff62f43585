/** What a model is told of: without a program that could confine commands it is not told of the shell. */

import type { Log, ToolSpec } from '../../runtime/port.ts'
import { fixedPath, install } from '../../sandbox/install.ts'
import type { SandboxKind } from '../../sandbox/port.ts'

export type Offering = {
  readonly sandbox?: SandboxKind
  readonly log: Log
  /** Whether a program is there; the system's own folders are looked through unless said otherwise. */
  readonly has?: (program: string) => boolean
}

/** One look, at every start: whether the sandbox really works is found out by the first command, which otherwise says what is missing. */
export function offered(specs: readonly ToolSpec[], { sandbox = 'auto', log, has = installed }: Offering): readonly ToolSpec[] {
  const wanted = sandbox === 'auto' || sandbox === 'bubblewrap'
  if (!wanted || !specs.some(({ name }) => name === 'shell') || has('bwrap')) return specs
  log('warn', 'shell tool off', { why: `no sandbox: ${install}` })
  return specs.filter(({ name }) => name !== 'shell')
}

function installed(program: string): boolean {
  return Bun.which(program, { PATH: fixedPath }) !== null
}
