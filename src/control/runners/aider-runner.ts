/** Runs aider with the seed's settings: CONTROLPLANE_AIDER_BIN, CONTROLPLANE_AIDER_FLAGS, and the message in a file. */

import type { ForeignRunner, RunnerEvent, RunnerTask } from './runner.ts'

export const defaultAiderFlags = '--no-check-update --no-gitignore --no-auto-commits --no-dirty-commits'
const messageFile = 'message.txt'

type AiderSettings = { readonly program?: string | undefined; readonly flags?: string | undefined }

export function aiderRunner({ program = 'aider', flags = defaultAiderFlags }: AiderSettings): ForeignRunner {
  const fixed = splitFlags(flags)
  return {
    name: 'aider',
    program,
    install: 'install it (python -m pip install aider-chat), or set CONTROLPLANE_AIDER_BIN',
    argv: (task) => [...fixed, ...usual(fixed), ...modelOf(task), '--message-file', `${task.home}/${messageFile}`],
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
function usual(fixed: readonly string[]): readonly string[] {
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
  return [{ type: 'usage', tokens: numberOf(sent) + numberOf(received ?? '0') }]
}

function numberOf(text: string): number {
  const factor = text.endsWith('k') ? 1_000 : text.endsWith('M') ? 1_000_000 : 1
  const value = Math.round(Number.parseFloat(text.replaceAll(',', '')) * factor)
  return Number.isSafeInteger(value) && value > 0 ? value : 0
}
