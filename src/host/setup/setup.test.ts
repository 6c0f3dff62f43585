import { expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createHostContext } from './context.ts'
import { loadSetup } from './setup.ts'

const made = { name: 'made', settings: { hook_env: { type: 'text', form: 'variable', default: 'HOOK', about: 'A NAME.' } } } as const

/** A home with this configuration, and secrets under names that do not reveal them. */
function stage(toml: string) {
  const home = mkdtempSync(join(tmpdir(), 'braidclaw-setup-'))
  mkdirSync(join(home, '.braidclaw'))
  writeFileSync(join(home, '.braidclaw/config.toml'), `workspace_dir = "${home}"\n${toml}`)
  const env = { HOME: home, HOOK: 'hook-Zx81kdQpLm20vBnTy77', OTHER: 'other-aReWq90sJhUcFgH1', WIRE: 'wire-8sJq2LmPd0vTy71x' }
  const { redactor } = loadSetup(createHostContext({ env, channels: [made], say: () => {} }))
  return {
    text: (name: keyof typeof env) => redactor.text(`it is ${env[name]}`),
    env,
    [Symbol.dispose]: () => rmSync(home, { recursive: true }),
  }
}

test('what a row names as a variable is a secret, of a provider and of a channel, set or by default; what none names is text', () => {
  using named = stage('[channels.made]\nhook_env = "OTHER"\n[providers.models.w]\nkind = "openai"\nmodel = "m"\napi_key_env = "WIRE"\n')
  for (const name of ['OTHER', 'WIRE'] as const) expect(named.text(name)).not.toContain(named.env[name])
  expect(named.text('HOOK')).toBe(`it is ${named.env.HOOK}`)
  using byDefault = stage('')
  expect(byDefault.text('HOOK')).not.toContain(byDefault.env.HOOK)
  expect(byDefault.text('OTHER')).toBe(`it is ${byDefault.env.OTHER}`)
})
