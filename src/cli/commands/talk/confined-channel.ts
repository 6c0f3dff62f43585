/** Opens conversations with agents that run as a whole in a sandbox. */

import type { AttendedChannel } from '../../../channels/inbox/channel-api.ts'
import type { CliSetup } from '../../../channels/terminal/context.ts'
import type { Conversation, ConversationChoice, Host } from '../../../host/api.ts'
import { FailureError } from '../../../host/failure.ts'
import { atAsyncEnd, atEnd } from '../../../kit/errors.ts'
import type { AgentOptions, BraidClaw, ProgramParts } from '../../../library/agent/agent-api.ts'
import { confinedAgent } from '../../../library/remote/confined-agent.ts'

type Confining = { readonly setup: CliSetup; readonly which: ConversationChoice; readonly parts?: ProgramParts }

export type Confiner = { confine(confining: Confining): BraidClaw; around(channel: AttendedChannel, setup: CliSetup): AttendedChannel }

/** `maxSeconds` in seconds, `maxMemory` in MiB. */
type ConfinerOptions = Pick<AgentOptions, 'maxTurns'> & {
  readonly [list in 'allowWrite' | 'denyRead' | 'allowDomain']?: readonly string[] | undefined
} & { readonly maxSeconds?: number; readonly maxMemory?: number; readonly autonomy?: AgentOptions['permissionMode'] }

export function createConfiner(given: ConfinerOptions): Confiner {
  const { allowWrite, denyRead, allowDomain, maxSeconds, maxMemory, autonomy: permissionMode, maxTurns } = given
  const bounds = {
    ...{ allowWrite, denyRead, allowedDomains: allowDomain },
    timeoutMs: maxSeconds && maxSeconds * 1_000,
    memoryBytes: maxMemory && maxMemory * 2 ** 20,
  }
  const confine: Confiner['confine'] = ({ setup, which, parts = { tools: [], rules: [] } }) => {
    const conversation = which.kind === 'resume' ? which.id : which.kind === 'latest' ? 'latest' : 'new'
    const log = (line: string) => setup.context.process.stderr.write(line)
    return confinedAgent({ setup, bounds, parts, options: { permissionMode, maxTurns, conversation, log } })
  }
  return { confine, around: (channel, setup) => confinedChannel(channel, setup, confine) }
}

function confinedChannel(channel: AttendedChannel, setup: CliSetup, confine: Confiner['confine']): AttendedChannel {
  return {
    ...channel,
    async start(host, signal) {
      const agents: BraidClaw[] = []
      const conversation: Host['conversation'] = async (which, { setup: own }) => {
        const agent = confine({ setup: { ...setup, ...own, context: setup.context }, which })
        agents.push(agent)
        return conversationWith(agent, setup)
      }
      await using _end = atAsyncEnd(() => Promise.all(agents.map((agent) => agent.close())))
      await channel.start({ ...host, conversation }, signal)
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
    async *run(prompt, signal, _, start) {
      if (start?.calls?.length) await refuse()
      closing.turn = Promise.withResolvers()
      using _end = atEnd(() => closing.turn?.resolve())
      yield* agent.run(typeof prompt === 'string' ? prompt : prompt.text, signal)
    },
    interrupted: async () => 'a confined agent does not continue an interrupted turn',
    commands: async () => undefined,
    steer: async () => false,
    changesOf: agent.changes,
    gateClosed: () => closing.turn?.promise ?? Promise.resolve(),
    ...{ addThread: refuse, tools: refuse, search: refuse, sideModel: refuse, requestParts: refuse },
    usage: () => undefined,
    context: () => undefined,
    unanswered: () => [],
    allowAlways: () => undefined,
    isStanding: () => false,
    jobs: () => undefined,
    compact: async () => undefined,
    readPictures: async () => [],
    readsUntrusted: async () => {},
    proof: async () => [],
  }
}
