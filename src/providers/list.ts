/** Every kind of provider, one line each; the order is that of the docs and of messages. */

import { fifo } from './fifo/fifo-provider.ts'
import { anthropic, openai, openaiCompatible } from './http-kinds.ts'
import { mock } from './mock.ts'
import { reliable } from './reliable.ts'
import { router } from './router.ts'
import { stub } from './stub.ts'

export const providerKinds = [mock, openaiCompatible, anthropic, openai, reliable, router, stub, fifo] as const
