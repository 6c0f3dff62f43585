import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { controlAddress, knownOperatorToken, operatorToken, operatorTokenFile } from './with-control.ts'

const home = mkdtempSync(join(tmpdir(), 'braidclaw-token-'))
const file = operatorTokenFile({ home })
beforeAll(() => mkdirSync(join(home, 'control')))
afterAll(() => rmSync(home, { recursive: true }))

describe('the operator token', () => {
  test('without one the message names variable, file and what to run', () => {
    expect(() => operatorToken({ env: {}, home })).toThrow(
      `CONTROLPLANE_OPERATOR_TOKEN is not set, and ${file} does not exist. On the machine of the control plane: braidclaw control init`,
    )
  })

  test('a file that others can read is refused, and an empty one holds no token', () => {
    writeFileSync(file, 'cpo_file\n')
    chmodSync(file, 0o640)
    expect(() => operatorToken({ env: {}, home })).toThrow(`chmod 600 ${file}`)
    writeFileSync(file, ' \n')
    chmodSync(file, 0o600)
    expect(() => operatorToken({ env: {}, home })).toThrow(`${file} holds no token`)
  })

  test('the variable wins over the file, and each is named as the origin', () => {
    writeFileSync(file, 'cpo_file\n')
    expect(knownOperatorToken({ env: {}, home })).toEqual({ token: 'cpo_file', origin: file })
    const env = { CONTROLPLANE_OPERATOR_TOKEN: ' cpo_variable ' }
    expect(operatorToken({ env, home })).toEqual({ token: 'cpo_variable', origin: 'CONTROLPLANE_OPERATOR_TOKEN' })
  })
})

describe('the address', () => {
  test.each(['ftp://x', 'nonsense', 'http://anna:secret@127.0.0.1:3100', 'http://127.0.0.1:3100/?a=1'])('%s is refused', (url) => {
    expect(() => controlAddress(url, {})).toThrow('error: --url')
    expect(() => controlAddress(undefined, { CONTROLPLANE_API_URL: url })).toThrow('error: CONTROLPLANE_API_URL')
  })

  test('the password of an address is not repeated', () => {
    expect(() => controlAddress('http://anna:secret@127.0.0.1:3100', {})).not.toThrow('secret')
  })

  test('the flag wins over the variables, and these over the default', () => {
    expect(controlAddress('http://a:1/x/', { CONTROLPLANE_API_URL: 'http://b:2' })).toEqual({
      url: 'http://a:1/x',
      origin: '--url',
      encrypted: false,
    })
    expect(controlAddress(undefined, { CONTROLPLANE_API_URL: 'https://b:2', CONTROLPLANE_API_PORT: '4' }).url).toBe('https://b:2')
    expect(controlAddress(undefined, { CONTROLPLANE_API_PORT: '4000' }).url).toBe('http://127.0.0.1:4000')
    expect(controlAddress(undefined, {})).toEqual({ url: 'http://127.0.0.1:3100', origin: 'the default address', encrypted: true })
  })
})
