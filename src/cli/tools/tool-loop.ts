/** A filter call whose loop of question, tools and answer somebody else runs (`--tool-backend`), mirrored like any other. */

import { createMirror } from '../agents/mirror.ts'
import type { Persona } from '../agents/persona.ts'
import { CliExit, exitCodes } from '../exit.ts'
import type { FilterFlags } from '../routes/types.ts'
import type { Setup } from '../world.ts'
import { backendOf, runBackend } from './tool-backend.ts'

export type Loop = {
  readonly setup: Setup
  readonly flags: FilterFlags
  readonly persona: Persona
  readonly prompt: string
  readonly system: string
  readonly tools?: string
}

/** @returns the exit code; undefined when the loop is our own. @throws CliExit 2 for flags that do not go together */
export async function elsewhere({ setup, flags, persona, prompt, system, tools }: Loop): Promise<number | undefined> {
  if (tools === undefined) throw new CliExit(exitCodes.usage, 'error: --tool-backend runs a loop with tools; name them with --tools')
  const backend = backendOf(setup, flags.toolBackend)
  if (backend === 'native') return undefined
  const odd = unusable(flags)
  if (odd !== undefined)
    throw new CliExit(exitCodes.usage, `error: ${odd} means nothing with the tool backend "${backend}"; it is for --tool-backend native`)
  const mirror = createMirror(setup, persona)
  mirror.begin(prompt)
  try {
    const { model, sandbox } = flags
    const run = {
      setup,
      backend,
      message: prompt,
      system,
      tools,
      agent: persona.id,
      ...(model ? { model } : {}),
      ...(sandbox ? { sandbox } : {}),
    }
    const { code, text, cancelled } = await runBackend(run)
    if (cancelled) return exitCodes.cancelled
    if (code === 0) mirror.show({ type: 'done', stopReason: 'end_turn', result: text.replace(/\n$/, '') })
    if (text !== '') setup.context.process.stdout.data(text.endsWith('\n') ? text : `${text}\n`)
    return code === 2 ? exitCodes.limit : code
  } finally {
    mirror.end()
  }
}

function unusable(flags: FilterFlags): string | undefined {
  if (flags.continue) return '-c'
  if (flags.resume !== undefined) return '--resume'
  return flags.json || (flags.outputFormat ?? 'text') !== 'text' ? '--json' : undefined
}
