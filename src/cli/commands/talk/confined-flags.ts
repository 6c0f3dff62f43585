/** Defines the flags of an agent that runs as a whole in a sandbox. */

import { type Flags, type Given, spelled } from '../../args/command.ts'
import type { turnFlags } from '../../args/turn-flags.ts'
import { usageError } from '../../exit.ts'
import type { Confiner } from './confined-channel.ts'

export const confinedFlags = {
  confined: {
    type: 'boolean',
    about: 'Run the whole agent in a sandbox, with a home of its own; its model is called outside (docs/sandbox.md)',
  },
  allowWrite: { type: 'text', many: true, about: 'With --confined: a path of the workspace that is writable; the rest is read-only then' },
  denyRead: { type: 'text', many: true, about: 'With --confined: a name or path that nothing inside can read' },
  allowDomain: { type: 'text', many: true, about: 'With --confined: a host that commands inside reach over HTTP and HTTPS' },
  maxSeconds: { type: 'whole', min: 1, unit: 'seconds', about: 'With --confined: end the agent after this time' },
  maxMemory: { type: 'whole', min: 256, unit: 'MiB', about: 'With --confined: memory of everything inside together, in MiB' },
} as const satisfies Flags

type ConfinedFlags = Given<typeof confinedFlags & Pick<typeof turnFlags, 'sandbox' | 'autonomy' | 'maxTurns'>>

/** @returns undefined without --confined. @throws CliExit for flags that have no effect without it, or with it */
export async function confinerOf(given: ConfinedFlags): Promise<Confiner | undefined> {
  const names = ['allowWrite', 'denyRead', 'allowDomain', 'maxSeconds', 'maxMemory'] as const
  const first = names.find((name) => given[name] !== undefined)
  if (!given.confined && first !== undefined) throw usageError(`${spelled(first)} belongs to --confined`)
  if (!given.confined) return undefined
  if (given.sandbox !== undefined)
    throw usageError('--sandbox is about single commands; --confined puts them and the agent into one sandbox')
  return (await import('./confined-channel.ts')).createConfiner(given)
}
