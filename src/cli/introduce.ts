/** A newcomer without any configuration hears once a turn that no model is connected, and how to connect one. */

import { providerNamed } from '../config/config.ts'
import type { Setup } from './world.ts'

export function introduce({ file, config, context: { env, process } }: Setup): void {
  const answers = providerNamed(config, config.defaultProvider)
  if (file !== undefined || answers?.kind !== 'mock' || answers.fixture !== undefined) return
  const key = ['OPENAI_API_KEY', 'ANTHROPIC_API_KEY', 'OPENROUTER_API_KEY', 'OLLAMA_HOST'].find((name) => env[name])
  const how = key
    ? `${key} is set: run "braidclaw init" to use it`
    : 'set OPENAI_API_KEY, ANTHROPIC_API_KEY, OPENROUTER_API_KEY or OLLAMA_HOST and run "braidclaw init"'
  process.stderr.write(`note: the offline helper answers; to connect a real model, ${how}\n`)
}
