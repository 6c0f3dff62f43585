/** Runs pi in its JSON mode: the skill index goes into its system prompt, its own skills are off, and its model calls are metered. */

import type { ForeignRunner, RunnerEvent, RunnerSupport, RunnerTask } from './runner.ts'
import { countIn, fieldsOf, objectIn, sessionEvents, textIn, textOfBlocks } from './runner.ts'

const agentFolder = '.pi/agent'
const extensionFile = 'skills-search.ts'
/** Pi reads a file when the value of --append-system-prompt is the path of one. */
const indexFile = 'skill-index.md'
const provider = 'controlplane'

export function piRunner({ program = 'pi', support = {} }: { readonly program?: string; readonly support?: RunnerSupport }): ForeignRunner {
  const { piExtension } = support
  return {
    name: 'pi',
    program,
    install: 'install it (npm install -g @earendil-works/pi-coding-agent; it needs Node.js 22 or later)',
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
