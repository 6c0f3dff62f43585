import { expect, test } from 'bun:test'
import { createHostContext } from '../../host/setup/context.ts'
import { channelRows } from '../list.ts'
import { bridgeEnvironment } from './bridge-processes.ts'

test('a bridge gets everything but what is ours alone, and where the FIFOs are', () => {
  const given = { HOME: '/h', DISCORD_BOT_TOKEN: 't', BRAIDCLAW_HOME: '/b', BUN_OPTIONS: 'x', NODE_OPTIONS: 'y', PLANCKCLAW_FIFOS: '/else' }
  const context = createHostContext({ env: given, channels: channelRows, say: () => {} })
  expect(bridgeEnvironment(context, '/fifos')).toEqual({ HOME: '/h', DISCORD_BOT_TOKEN: 't', PLANCKCLAW_FIFOS: '/fifos' })
})
