/** Registers the provider that needs no network; what it plays is loaded when it is used. */

import type { ProviderKind } from './provider-kind.ts'
import { mockRows } from './rows.ts'

export const mock = {
  kind: 'mock',
  settings: mockRows,
  budget: 'free',
  create: async (given) => (await import('./offline/mock-player.ts')).createMock(given),
} as const satisfies ProviderKind<typeof mockRows>
