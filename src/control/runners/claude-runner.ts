/** Runs Claude Code in print mode: its model calls go through the metered address of the control plane. */

import { isObject } from '../../kit/json.ts'
import type { ForeignRunner, RunnerEvent, RunnerSupport } from './runner.ts'
import { countIn, fieldsOf, objectIn, sessionEvents, textIn, textOfBlocks } from './runner.ts'

const settingsFolder = '.claude'
const mcpFile = 'mcp.json'
const indexFile = 'skill-index.md'

export function claudeRunner({
  program = 'claude',
  support = {},
}: {
  readonly program?: string
  readonly support?: RunnerSupport
}): ForeignRunner {
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
      CLAUDE_CONFIG_DIR: `${home}/${settingsFolder}`,
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
