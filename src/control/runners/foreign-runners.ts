/** Describes the programs of others that carry out tasks: how each is started and configured, and what its lines mean. */

import { isObject } from '../../kit/json.ts'
import type { ForeignRunner, RunnerEvent, RunnerSupport, RunnerTask } from './runner.ts'
import { countIn, fieldsOf, objectIn, sessionEvents, textIn, textOfBlocks } from './runner.ts'

type ForeignProgram = { readonly program?: string | undefined; readonly support?: RunnerSupport }

const indexFile = 'skill-index.md'
const agentFolder = '.pi/agent'
const extensionFile = 'skills-search.ts'
const provider = 'controlplane'

/** Runs pi in its JSON mode: the skill index goes into its system prompt, its own skills are off, and its model calls are metered. */
export function piRunner({ program = 'pi', support = {} }: ForeignProgram): ForeignRunner {
  const { piExtension } = support
  return {
    name: 'pi',
    program,
    install: 'install it (npm install -g @earendil-works/pi-coding-agent; it needs Node.js 22 or later)',
    // Pi reads a file when the value of --append-system-prompt is the path of one.
    argv: ({ home, skillIndex, model, session }) => [
      ...['--mode', 'json', '--no-skills', '--no-extensions', '--no-approve', '--offline'],
      ...(skillIndex === '' ? [] : ['--append-system-prompt', `${home}/${indexFile}`]),
      ...(piExtension === undefined ? [] : ['--extension', `${home}/${extensionFile}`]),
      ...(model === undefined ? [] : ['--model', `${provider}/${model}`]),
      ...(session === undefined ? [] : ['--session-id', session]),
      '--print',
    ],
    stdin: ({ prompt }) => prompt,
    env: ({ home }) => ({ PI_CODING_AGENT_DIR: `${home}/${agentFolder}`, PI_OFFLINE: '1', PI_TELEMETRY: '0' }),
    files: (task) => [
      { path: `${agentFolder}/models.json`, content: modelsOf(task) },
      ...(task.skillIndex === '' ? [] : [{ path: indexFile, content: task.skillIndex }]),
      ...(piExtension === undefined ? [] : [{ path: extensionFile, content: piExtension }]),
    ],
    parse: parsePiLine,
  }
}

/** Names the variable of the key instead of the key. Without a model, pi asks the one of OpenAI that it prefers. */
function modelsOf({ apiUrl, model }: RunnerTask): string {
  const served = { baseUrl: `${apiUrl}/api/controlplane/llm/v1`, apiKey: '$CONTROLPLANE_API_KEY' }
  const providers =
    model === undefined ? { openai: served } : { [provider]: { ...served, api: 'openai-completions', models: [{ id: model }] } }
  return `${JSON.stringify({ providers }, null, 2)}\n`
}

/** Reports each message of the assistant as the result, because the last one counts. */
function parsePiLine(line: string): readonly RunnerEvent[] {
  const fields = fieldsOf(line)
  if (textIn(fields, 'type') === 'session') return sessionEvents(textIn(fields, 'id'))
  if (textIn(fields, 'type') === 'tool_execution_start') return [{ type: 'tool', name: textIn(fields, 'toolName') }]
  const message = objectIn(fields, 'message')
  if (textIn(fields, 'type') !== 'message_end' || textIn(message, 'role') !== 'assistant') return []
  const usage = objectIn(message, 'usage')
  const counted = ['input', 'output', 'cacheRead', 'cacheWrite'].reduce((sum, name) => sum + countIn(usage, name), 0)
  const text = textOfBlocks(message?.content)
  const failed = /^(error|aborted)$/.test(textIn(message, 'stopReason'))
  return [
    ...(text === '' ? [] : [{ type: 'text' as const, text }]),
    { type: 'usage', tokens: Math.max(counted, countIn(usage, 'totalTokens')) },
    { type: 'result', ok: !failed, output: failed ? textIn(message, 'errorMessage') || text : text },
  ]
}

const mcpFile = 'mcp.json'

/** Runs Claude Code in print mode: its model calls go through the metered address of the control plane. */
export function claudeRunner({ program = 'claude', support = {} }: ForeignProgram): ForeignRunner {
  const { mcpServer } = support
  return {
    name: 'claude',
    program,
    install: 'install it (npm install -g @anthropic-ai/claude-code)',
    argv: ({ home, skillIndex, model, session }) => [
      ...['--print', '--output-format', 'stream-json', '--verbose', '--dangerously-skip-permissions'],
      ...['--setting-sources', 'user', '--strict-mcp-config'],
      ...(mcpServer === undefined ? [] : ['--mcp-config', `${home}/${mcpFile}`]),
      ...(skillIndex === '' ? [] : ['--append-system-prompt-file', `${home}/${indexFile}`]),
      ...(model === undefined ? [] : ['--model', model]),
      ...(session === undefined ? [] : ['--resume', session]),
    ],
    stdin: ({ prompt }) => prompt,
    env: ({ apiUrl, runToken, home }) => ({
      ANTHROPIC_BASE_URL: `${apiUrl}/api/controlplane/llm`,
      ANTHROPIC_API_KEY: runToken,
      CLAUDE_CONFIG_DIR: `${home}/.claude`,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      DISABLE_AUTOUPDATER: '1',
      // Claude Code refuses to skip its questions as root unless this variable says that it runs in a sandbox.
      IS_SANDBOX: '1',
    }),
    files: ({ skillIndex }) => [
      ...(skillIndex === '' ? [] : [{ path: indexFile, content: skillIndex }]),
      ...(mcpServer === undefined
        ? []
        : [{ path: mcpFile, content: `${JSON.stringify({ mcpServers: { skills: { type: 'stdio', ...mcpServer } } }, null, 2)}\n` }]),
    ],
    parse: parseClaudeLine,
  }
}

/** Reads one line; the last one has the result, and the tokens of the whole run. */
function parseClaudeLine(line: string): readonly RunnerEvent[] {
  const fields = fieldsOf(line)
  if (textIn(fields, 'type') === 'system') return sessionEvents(textIn(fields, 'session_id'))
  if (textIn(fields, 'type') === 'assistant') return messageEvents(objectIn(fields, 'message')?.content)
  if (textIn(fields, 'type') !== 'result') return []
  const usage = objectIn(fields, 'usage')
  const names = ['input_tokens', 'output_tokens', 'cache_creation_input_tokens', 'cache_read_input_tokens']
  return [
    { type: 'usage', tokens: names.reduce((sum, name) => sum + countIn(usage, name), 0) },
    { type: 'result', ok: fields?.is_error !== true, output: textIn(fields, 'result') || textIn(fields, 'subtype') },
  ]
}

function messageEvents(content: unknown): readonly RunnerEvent[] {
  const text = textOfBlocks(content)
  const blocks: readonly unknown[] = Array.isArray(content) ? content : []
  const tools = blocks.flatMap((block): RunnerEvent[] =>
    isObject(block) && block.type === 'tool_use' ? [{ type: 'tool', name: textIn(block, 'name') }] : [],
  )
  return [...(text === '' ? [] : [{ type: 'text' as const, text }]), ...tools]
}

/** Runs Codex without a terminal: its model calls go through the metered address of the control plane. */
export function codexRunner({ program = 'codex', support = {} }: ForeignProgram): ForeignRunner {
  return {
    name: 'codex',
    program,
    install: 'install it (npm install -g @openai/codex)',
    countsWholeSession: true,
    // Our own confinement limits it, and its sandbox cannot start inside another one. "-": the prompt comes from standard input.
    argv: ({ session, model }) => [
      'exec',
      ...(session === undefined ? [] : ['resume', session]),
      ...['--json', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox', '--ignore-rules'],
      ...(model === undefined ? [] : ['--model', model]),
      '-',
    ],
    stdin: ({ prompt }) => prompt,
    env: ({ home }) => ({ CODEX_HOME: `${home}/.codex` }),
    files: (task) => [{ path: '.codex/config.toml', content: settingsOf(task, support) }],
    parse: parseCodexLine,
  }
}

/** Writes TOML; a JSON text is a TOML text too. */
function settingsOf({ apiUrl, skillIndex }: RunnerTask, { mcpServer }: RunnerSupport): string {
  const lines = [
    'model_provider = "controlplane"',
    'check_for_update_on_startup = false',
    ...(skillIndex === '' ? [] : [`developer_instructions = ${JSON.stringify(skillIndex)}`]),
    '[analytics]',
    'enabled = false',
    '[model_providers.controlplane]',
    'name = "controlplane"',
    `base_url = ${JSON.stringify(`${apiUrl}/api/controlplane/llm/v1`)}`,
    'env_key = "CONTROLPLANE_API_KEY"',
    'wire_api = "responses"',
    // Another try would get the same refusal, and five tries would take six seconds.
    'stream_max_retries = 2',
    ...(mcpServer === undefined ? [] : ['[mcp_servers.skills]', ...serverLines(mcpServer)]),
  ]
  return `${lines.join('\n')}\n`
}

function serverLines({ command, args, env = {} }: NonNullable<RunnerSupport['mcpServer']>): readonly string[] {
  const variables = Object.entries(env).map(([name, value]) => `${JSON.stringify(name)} = ${JSON.stringify(value)}`)
  return [
    `command = ${JSON.stringify(command)}`,
    `args = ${JSON.stringify(args)}`,
    ...(variables.length === 0 ? [] : [`env = { ${variables.join(', ')} }`]),
  ]
}

function parseCodexLine(line: string): readonly RunnerEvent[] {
  const fields = fieldsOf(line)
  const type = textIn(fields, 'type')
  if (type === 'thread.started') return sessionEvents(textIn(fields, 'thread_id'))
  if (type === 'item.completed') return itemEvents(objectIn(fields, 'item'))
  if (type === 'turn.completed') {
    const usage = objectIn(fields, 'usage')
    return [{ type: 'usage', tokens: countIn(usage, 'input_tokens') + countIn(usage, 'output_tokens') }]
  }
  if (type === 'turn.failed') return [{ type: 'result', ok: false, output: textIn(objectIn(fields, 'error'), 'message') }]
  return []
}

/** Reports a message as the result, because the last one counts. */
function itemEvents(item: ReturnType<typeof fieldsOf>): readonly RunnerEvent[] {
  const type = textIn(item, 'type')
  const text = textIn(item, 'text')
  if (type === 'agent_message')
    return [
      { type: 'text', text },
      { type: 'result', ok: true, output: text },
    ]
  return type === 'command_execution' || type === 'mcp_tool_call' || type === 'file_change' ? [{ type: 'tool', name: type }] : []
}

const usualAiderFlags = '--no-check-update --no-gitignore --no-auto-commits --no-dirty-commits'
const messageFile = 'message.txt'

/** Runs aider with the seed's settings: CONTROLPLANE_AIDER_BIN, CONTROLPLANE_AIDER_FLAGS, and the message in a file. */
export function aiderRunner({
  program = 'aider',
  flags = usualAiderFlags,
}: Pick<ForeignProgram, 'program'> & { readonly flags?: string | undefined }): ForeignRunner {
  const fixed = splitFlags(flags)
  return {
    name: 'aider',
    program,
    install: 'install it (python -m pip install aider-chat), or set CONTROLPLANE_AIDER_BIN',
    argv: (task) => [...fixed, ...unattended(fixed), ...modelOf(task), '--message-file', `${task.home}/${messageFile}`],
    env: ({ apiUrl, runToken }) => ({
      OPENAI_API_BASE: `${apiUrl}/api/controlplane/llm/v1`,
      OPENAI_API_KEY: runToken,
      ANTHROPIC_API_BASE: `${apiUrl}/api/controlplane/llm`,
      ANTHROPIC_API_KEY: runToken,
      AIDER_ANALYTICS: 'false',
    }),
    files: ({ prompt, skillIndex }) => [{ path: messageFile, content: skillIndex === '' ? prompt : `${skillIndex}\n\n${prompt}` }],
    parse: parseAiderLine,
  }
}

/** Adds the flags without which aider would wait for answers or draw on a terminal. */
function unattended(fixed: readonly string[]): readonly string[] {
  return ['--yes-always', '--no-pretty', '--no-stream'].filter((flag) => !fixed.includes(flag))
}

function modelOf({ model }: RunnerTask): readonly string[] {
  return model === undefined ? [] : ['--model', model.includes('/') ? model : `openai/${model}`]
}

/** Splits at white space as a shell does, with single and double quotes, and interprets nothing else. */
export function splitFlags(text: string): readonly string[] {
  const words = text.matchAll(/(?:[^\s"']+|"[^"]*"|'[^']*')+/g)
  return [...words].map(([word]) => word.replace(/"([^"]*)"|'([^']*)'/g, (_, double?: string, single?: string) => double ?? single ?? ''))
}

/** Aider reports `Tokens: 1.2k sent, 310 received.` after each message. Every other line is its answer. */
function parseAiderLine(line: string): readonly RunnerEvent[] {
  const [, sent, received] = /^Tokens: ([\d.,]+[kM]?) sent(?:.*?,\s*([\d.,]+[kM]?) received)?/.exec(line) ?? []
  if (sent === undefined) return line.trim() === '' ? [] : [{ type: 'text', text: line }]
  return [{ type: 'usage', tokens: aiderCount(sent) + aiderCount(received ?? '0') }]
}

function aiderCount(text: string): number {
  const factor = text.endsWith('k') ? 1_000 : text.endsWith('M') ? 1_000_000 : 1
  const value = Math.round(Number.parseFloat(text.replaceAll(',', '')) * factor)
  return Number.isSafeInteger(value) && value > 0 ? value : 0
}

/**
 * Runs any program: it reads the task as one JSON object from its standard input, and may print JSON lines about what it does. The operator
 * gives the program and its arguments; nothing of a task is added to them.
 */
export function commandRunner([program = '', ...fixed]: readonly string[]): ForeignRunner {
  return {
    name: 'command',
    program,
    install: 'name a program that exists, after "--": --runner command -- PROGRAM [ARGUMENT…]',
    argv: () => fixed,
    stdin: ({ task, runId, prompt, skillIndex, workspace, resumes }) =>
      `${JSON.stringify({ task, run_id: runId, prompt, skill_index: skillIndex, workspace, resumes })}\n`,
    env: () => ({}),
    files: () => [],
    parse: parseCommandLine,
  }
}

/** `{"type":"text","text"}`, `{"type":"tool","name"}`, `{"type":"usage","tokens"}`, `{"type":"result","ok","output","skill"?}`; else text. */
function parseCommandLine(line: string): readonly RunnerEvent[] {
  const fields = fieldsOf(line)
  if (!fields) return line.trim() === '' ? [] : [{ type: 'text', text: line }]
  const type = textIn(fields, 'type')
  if (type === 'text') return [{ type, text: textIn(fields, 'text') }]
  if (type === 'tool') return [{ type, name: textIn(fields, 'name') }]
  if (type === 'usage') return [{ type, tokens: countIn(fields, 'tokens') }]
  if (type !== 'result') return []
  const skill = textIn(fields, 'skill')
  return [{ type, ok: fields?.ok !== false, output: textIn(fields, 'output'), skill: skill || undefined }]
}
