/** Runs Codex without a terminal: its model calls go through the metered address of the control plane. */

import type { ForeignRunner, RunnerEvent, RunnerSupport, RunnerTask } from './runner.ts'
import { countIn, fieldsOf, objectIn, sessionEvents, textIn } from './runner.ts'

const settingsFolder = '.codex'

export function codexRunner({
  program = 'codex',
  support = {},
}: {
  readonly program?: string
  readonly support?: RunnerSupport
}): ForeignRunner {
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
    env: ({ home }) => ({ CODEX_HOME: `${home}/${settingsFolder}` }),
    files: (task) => [{ path: `${settingsFolder}/config.toml`, content: settingsOf(task, support) }],
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
