/** A control plane as a process of its own, for tests that kill it: `bun control-child.ts HOME PORT`; prints its address when it is ready. */

import { openControl } from '../../../src/control/server/open-control.ts'

const [home = '', port = '0'] = process.argv.slice(2)
const control = await openControl({
  home,
  port: Number(port),
  env: process.env,
  log: (level, event, fields) => console.error(level, event, JSON.stringify(fields)),
})
process.on('SIGTERM', () => void control.close().then(() => process.exit(0)))
console.log(control.url)
