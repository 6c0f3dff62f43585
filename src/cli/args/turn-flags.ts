/** Defines the flags of every turn at the command line, for all output formats, and assembles its message. */

import type { CliContext } from '../../channels/terminal/context.ts'
import type { OutputFormat } from '../../channels/terminal/render.ts'
import { stdinKind } from '../../channels/terminal/tty.ts'
import type { ConversationRequest, Setup } from '../../host/api.ts'
import { FailureError } from '../../host/failure.ts'
import { efforts } from '../../providers/rows.ts'
import type { Picture } from '../../runtime/port.ts'
import { usageError } from '../exit.ts'
import type { Flags, Given } from './command.ts'

/** Defines the flags that several commands share. */
export const workspaceFlag = {
  workspace: { type: 'text', short: 'C', setting: 'workspace_dir', about: 'The folder to work in (without a config file: this one)' },
} as const satisfies Flags

export const sandboxFlag = {
  sandbox: {
    type: 'choice',
    values: ['auto', 'bubblewrap', 'landlock', 'none'],
    about: 'How commands are confined (default: auto); none runs them with all your rights',
  },
} as const satisfies Flags

export const toolsFlag = {
  tools: {
    type: 'text',
    about: 'Which tools: a folder of executables, a JSON file that lists some by name, or "default" for the built-in ones',
  },
} as const satisfies Flags

export const toolEnvFlag = {
  toolEnv: {
    type: 'text',
    many: true,
    setting: 'tools.env',
    about: 'A variable of the environment that executable tools get: NAME, or TOOL:NAME for one tool',
  },
} as const satisfies Flags

export const autonomyFlag = {
  autonomy: {
    type: 'choice',
    values: ['readonly', 'supervised', 'full'],
    setting: 'security.autonomy',
    about: 'How much may happen without asking',
  },
} as const satisfies Flags

export const approveFlag = {
  approveAllMedium: {
    type: 'boolean',
    also: 'auto',
    setting: 'security.approve_all_medium',
    about: 'Run commands and apply harmless changes without asking; the rest still asks',
  },
} as const satisfies Flags

export const modelFlag = {
  model: { type: 'text', setting: 'default_model', about: 'Provider and model for this call, e.g. local/mock' },
} as const satisfies Flags

export const agentFlag = {
  agent: { type: 'text', setting: 'default_agent', about: 'Whose soul, session and log', complete: 'agents' },
} as const satisfies Flags

/** Defines the flags of a tool or a loop that another program calls. */
export const loggingAgentFlag = { agent: { ...agentFlag.agent, about: 'In whose agent.jsonl the loop is logged' } } as const satisfies Flags

export const jsonFlag = { json: { type: 'boolean', about: 'Print JSON for machines' } } as const satisfies Flags

export const limitOf20 = { limit: { type: 'whole', default: 20, about: 'How many at most' } } as const satisfies Flags

/** Defines how often a flaky check runs. */
export const checkRunsFlags = {
  checkRuns: { type: 'whole', min: 1, max: 100, about: 'Run each check so many times at most, because it is flaky (default: 1)' },
  checkPass: { type: 'whole', min: 1, max: 100, about: 'How many of these runs must pass (default: all)' },
} as const satisfies Flags

export const checkFlags = {
  check: {
    type: 'text',
    many: true,
    about: 'A command that must exit with 0 after the answer, else the exit code is 11; it changes nothing',
  },
  ...checkRunsFlags,
} as const satisfies Flags

export const wiggumFlags = {
  wiggum: { type: 'boolean', about: 'Work without questions in a copy of the folder until every --check passes, then apply the result' },
  maxIterations: { type: 'whole', min: 1, max: 1000, about: 'With --wiggum: end after so many failed rounds of checks (default: 20)' },
  until: {
    type: 'text',
    about: 'With --wiggum: end then: "06:30", "in 8h"; a provider that fails is asked again until then (default: an hour)',
  },
  branch: { type: 'text', about: 'With --wiggum: make the result a commit on this new branch, and leave the folder as it is' },
  protectTests: { type: 'boolean', about: 'With --wiggum: refuse changes of tests and of what runs them (the default)' },
  noProtectTests: { type: 'boolean', about: 'With --wiggum: let the run change tests; the report names them' },
  force: { type: 'boolean', about: 'With --wiggum: work on the task although the checks pass already' },
} as const satisfies Flags

export const envFileFlag = {
  envFile: { type: 'text', about: 'NAME=value lines, read and never run (default: config.env in the home, if it is there)' },
} as const satisfies Flags

/** Defines the files of a server that nobody watches. */
export const serverFileFlags = {
  logFile: { type: 'text', about: 'Write the log and all messages to this file instead of stderr; a full file (5 MB) becomes NAME.1' },
  ...envFileFlag,
} as const satisfies Flags

/** Defines the flags of the commands that use the six FIFOs. */
export const folderFlags = {
  fifoDir: { type: 'text', about: 'The folder of the six FIFOs (default: PLANCKCLAW_FIFOS, or /tmp/planckclaw)' },
  ...envFileFlag,
} as const satisfies Flags

const roundsFlag = { maxTurns: { type: 'whole', setting: 'limits.max_tool_rounds', about: 'Tool rounds at most' } } as const satisfies Flags

/** Flags about turns that a process takes which stays and answers on channels. */
export const serverFlags = {
  ...workspaceFlag,
  ...sandboxFlag,
  ...agentFlag,
  ...modelFlag,
  ...autonomyFlag,
  ...roundsFlag,
  ...approveFlag,
} as const satisfies Flags

export const turnFlags = {
  ...workspaceFlag,
  ...modelFlag,
  effort: { type: 'choice', values: efforts, about: 'How much the model reasons before it answers (docs/models.md)' },
  ...agentFlag,
  ...autonomyFlag,
  ...roundsFlag,
  continue: {
    type: 'boolean',
    short: 'c',
    about: 'Continue the latest conversation of this folder (with an agent: the one of its session)',
  },
  resume: { type: 'text', complete: 'conversations', about: 'Continue this conversation: its id, its name, or "last"' },
  acceptAltered: { type: 'boolean', about: 'Continue although the record of the conversation was altered; a receipt says so' },
  image: { type: 'text', many: true, about: 'A PNG, JPEG, WebP or GIF file that the model sees with the message; repeat it for more' },
  ...sandboxFlag,
  ...approveFlag,
  outputFormat: {
    type: 'choice',
    values: ['text', 'json', 'stream-json'],
    about: 'text (default), one JSON object, or one AgentEvent a line',
  },
  ...jsonFlag,
  quiet: { type: 'boolean', short: 'q', about: 'No notes on stderr; errors, warnings and questions remain' },
} as const satisfies Flags

type TurnFlags = Given<typeof turnFlags>

/** Reads pictures, from their paths if these are given. @throws FailureError `usage` for what is not a picture or may not be read */
export async function imagesOf(setup: Setup, images: readonly (string | Uint8Array)[]): Promise<readonly Picture[] | undefined> {
  return images.length === 0 ? undefined : (await import('../../host/run/pictures.ts')).picturesOf(setup, images)
}

/**
 * `session` returns the conversation that `-c` continues for a named agent. @throws FailureError `usage` when the flags name two
 * conversations.
 */
export function conversationOf(
  { continue: latest = false, resume }: Pick<TurnFlags, 'continue' | 'resume'>,
  session?: () => ConversationRequest['conversation'],
): ConversationRequest['conversation'] {
  if (latest && resume !== undefined) throw new FailureError('usage', '--continue and --resume name two conversations; pass one')
  if (resume !== undefined) return { kind: 'resume', id: resume }
  if (!latest) return { kind: 'new' }
  return session?.() ?? { kind: 'latest' }
}

export function acceptance({ acceptAltered, sandbox }: Pick<TurnFlags, 'acceptAltered' | 'sandbox'>) {
  return { acceptAltered, sandbox }
}

export function formatOf({ json = false, outputFormat }: Pick<TurnFlags, 'json' | 'outputFormat'>): OutputFormat {
  if (json && outputFormat !== undefined && outputFormat !== 'json')
    throw new FailureError('usage', `--json and --output-format ${outputFormat} name two formats; pass one`)
  return outputFormat ?? (json ? 'json' : 'text')
}

export type MessageSource = {
  readonly message?: string
  /** Tells the user what to do when there is no text at all. */
  readonly advice: string
  /** True when there is something to ask besides. */
  readonly isOptional?: boolean | undefined
  /** Returns the text for a stdin that has none, such as a picture. */
  readonly binary?: (bytes: Uint8Array) => Promise<string>
}

/** @returns undefined when there are no words and stdin is a terminal. @throws CliExit 2 when there is no text to answer */
export async function messageOf({ message, advice, isOptional, binary }: MessageSource, context: CliContext): Promise<string | undefined> {
  const kind = stdinKind()
  if (message === undefined && kind === 'terminal') return isOptional ? '' : undefined
  const options = { patient: message === undefined, tell: (line: string) => context.process.stderr.write(`${line}\n`), binary }
  const piped = kind === 'data' ? await (await import('../../channels/terminal/input-stream.ts')).readStdin(options) : ''
  const whole = [message ?? '', piped.trimEnd()].filter((text) => text.trim() !== '').join('\n\n')
  if (whole !== '' || isOptional) return whole
  throw usageError(`nothing to answer: ${advice}`)
}
