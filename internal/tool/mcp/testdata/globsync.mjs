// The suite takes a function from fs that Node has since 22, for a command of its
// own that the tests do not use. Older ones get a fs with something of that name.
import { register } from 'node:module'
import * as fs from 'node:fs'

if (!fs.globSync) {
  const source = "export * from 'node:fs'; export { default } from 'node:fs'; export const globSync = undefined"
  const shim = 'data:text/javascript,' + encodeURIComponent(source)
  register('data:text/javascript,' + encodeURIComponent(`export const resolve = (name, context, next) =>
    name === 'fs' ? { url: ${JSON.stringify(shim)}, shortCircuit: true } : next(name, context)`))
}
