/** Defines the flags of an agent that runs as a whole in a sandbox, and opens its conversation. */

import type { AttendedChannel } from '../../../channels/inbox/channel-api.ts'
import type { CliSetup } from '../../../channels/terminal/context.ts'
import type { Conversation, ConversationChoice, Host } from '../../../host/api.ts'
import { FailureError } from '../../../host/failure.ts'
import type { BraidClaw, ProgramParts } from '../../../library/agent/agent-api.ts'
import { type Flags, type Given, spelled } from '../../args/command.ts'
import type { turnFlags } from '../../args/turn-flags.ts'
import { usageError } from '../../exit.ts'

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

type Confining = { readonly setup: CliSetup; readonly which: ConversationChoice; readonly parts?: ProgramParts }
export type Confiner = { confine(confining: Confining): BraidClaw }

/** @returns undefined without --confined. @throws CliExit for flags that have no effect without it, or with it */
export async function confinerOf(given: ConfinedFlags): Promise<Confiner | undefined> {
  const { confined, allowWrite, denyRead, allowDomain, maxSeconds, maxMemory } = given
  const names = ['allowWrite', 'denyRead', 'allowDomain', 'maxSeconds', 'maxMemory'] as const
  const first = names.find((name) => given[name] !== undefined)
  if (!confined && first !== undefined) throw usageError(`${spelled(first)} belongs to --confined`)
  if (!confined) return undefined
  if (given.sandbox !== undefined)
    throw usageError('--sandbox is about single commands; --confined puts them and the agent into one sandbox')
  const { confinedAgent } = await import('../../../library/remote/confined-agent.ts')
  const bounds = {
    ...{ allowWrite, denyRead, allowedDomains: allowDomain },
    timeoutMs: maxSeconds && maxSeconds * 1_000,
    memoryBytes: maxMemory && maxMemory * 2 ** 20,
  }
  return {
    confine({ setup, which, parts = { tools: [], rules: [] } }) {
      const conversation = which.kind === 'resume' ? which.id : which.kind === 'latest' ? 'latest' : 'new'
      const log = (line: string) => setup.context.process.stderr.write(line)
      const { autonomy: permissionMode, maxTurns } = given
      return confinedAgent({ setup, bounds, parts, options: { permissionMode, maxTurns, conversation, log } })
    },
  }
}

/** Returns a channel whose conversations are confined agents. */
export function confinedChannel(channel: AttendedChannel, setup: CliSetup, { confine }: Confiner): AttendedChannel {
  return {
    ...channel,
    async start(host, signal) {
      const agents: BraidClaw[] = []
      const conversation: Host['conversation'] = async (which, { setup: own }) => {
        const agent = confine({ setup: { ...setup, ...own, context: setup.context }, which })
        agents.push(agent)
        return conversationWith(agent, setup)
      }
      try {
        await channel.start({ ...host, conversation }, signal)
      } finally {
        await Promise.all(agents.map((agent) => agent.close()))
      }
    },
  }
}

/** Shows a confined agent as a conversation; its records stay in its own home. */
function conversationWith(agent: BraidClaw, { config }: CliSetup): Conversation {
  const closing: { turn?: PromiseWithResolvers<void> } = {}
  const refuse = async (): Promise<never> => {
    throw new FailureError('usage', 'this needs the records of the agent, which are in its own home; leave out --confined')
  }
  return {
    ...agent,
    get id() {
      return agent.conversationId() ?? ''
    },
    model: `${config.defaultProvider}/${config.defaultModel}`,
    workspace: config.workspaceDir,
    async *run(prompt, signal) {
      closing.turn = Promise.withResolvers()
      try {
        yield* agent.run(prompt, signal)
      } finally {
        closing.turn.resolve()
      }
    },
    interrupted: async () => 'a confined agent does not continue an interrupted turn',
    changesOf: agent.changes,
    gateClosed: () => closing.turn?.promise ?? Promise.resolve(),
    addThread: refuse,
    usage: () => undefined,
    context: () => undefined,
    unanswered: () => [],
    allowAlways: () => undefined,
    isStanding: () => false,
    tools: refuse,
    jobs: () => undefined,
    search: refuse,
    compact: async () => {},
    readPictures: async () => [],
    sideModel: refuse,
    readsUntrusted: async () => {},
  }
}
