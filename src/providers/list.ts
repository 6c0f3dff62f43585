/** Lists every kind of provider in the order of the docs and messages. */

import { fifo } from './fifo/fifo-kind.ts'
import { anthropic, openai, openaiCompatible, plugin } from './http-kinds.ts'
import { mock, stub } from './offline-kinds.ts'
import { reliable, router } from './reliable.ts'

export const providerKinds = [
  // Add one line per kind (docs/extending.md).
  mock,
  openaiCompatible,
  anthropic,
  openai,
  reliable,
  router,
  stub,
  fifo,
  plugin,
] as const
