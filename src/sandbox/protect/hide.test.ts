import { expect, test } from 'bun:test'
import { chmodSync, chownSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { place } from '../fixture.ts'
import { fixedPath } from '../trial-key.ts'

/** Root can read everything, so only the child of an ordinary user can be refused. */
const asRoot = process.getuid?.() === 0
const canSwitch = !asRoot || Bun.which('setpriv') !== null
if (!canSwitch) console.warn('hiding our process from its children is not tested: this is root, and there is no setpriv')

const NOBODY = '65534'

const script = `
const { hideProcess } = await import('./sandbox/protect/hide.ts')
const ask = (what) => {
  const { stdout } = Bun.spawnSync(['/bin/sh', '-c', what], { env: { PATH: process.env.PATH }, stderr: 'ignore' })
  return stdout.toString().includes('planted')
}
const look = () => ask('tr "\\\\0" "\\\\n" </proc/$PPID/environ')
const before = look()
const hidden = hideProcess()
const core = require('node:fs').readFileSync('/proc/self/limits', 'utf8').match(/Max core file size +(\\d+) +(\\d+)/).slice(1)
const own = require('node:fs').readdirSync('/proc/self/fd').length > 2
const grandchild = ask('sh -c "tr \\\\\\\\0 \\\\\\\\n </proc/$PPID/environ"')
const child = Bun.spawnSync(['/bin/sh', '-c', 'tr "\\\\0" "\\\\n" </proc/$$/environ'], { env: { OWN: 'visible' } }).stdout.toString().includes('visible')
console.log(JSON.stringify({ before, hidden, after: look(), grandchild, child, core, own }))`

test.if(canSwitch)('a child of the same user outside of any sandbox reads our environment before, and never after', async () => {
  using at = place()
  const home = join(at.root, 'user')
  mkdirSync(home)
  if (asRoot) chownSync(home, Number(NOBODY), Number(NOBODY))
  chmodSync(at.root, 0o755)
  const program = join(home, 'bun')
  await Bun.$`cp --reflink=auto ${process.execPath} ${program} && cp -r ${join(import.meta.dir, '..')} ${join(import.meta.dir, '../../kit')} ${home} && chmod -R a+rX ${home}`
  const become = asRoot ? ['setpriv', '--reuid', NOBODY, '--regid', NOBODY, '--clear-groups'] : []
  const child = Bun.spawn([...become, program, '--config=/dev/null', '-e', script], {
    env: { PATH: fixedPath, HOME: home, TMPDIR: home, OPENAI_API_KEY: 'planted' },
    cwd: home,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  expect(stderr).toBe('')
  expect(JSON.parse(stdout)).toEqual({
    before: true,
    hidden: true,
    after: false,
    grandchild: false,
    child: true,
    core: ['0', '0'],
    own: true,
  })
})
