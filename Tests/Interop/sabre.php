<?php
// Sabre/DAV over the folder DAV_ROOT. Names with a character of DAV_FORBIDDEN are refused in the same way as by Nextcloud.
error_reporting(E_ALL & ~E_DEPRECATED);
ini_set('display_errors', '0');
ini_set('memory_limit', '512M');
require '/usr/share/php/Sabre/autoload.php';

// Nextcloud's exception has this name in another namespace.
class InvalidPath extends Sabre\DAV\Exception {
    public function getHTTPCode() { return 400; }
}

class Names extends Sabre\DAV\ServerPlugin {
    public function initialize(Sabre\DAV\Server $server) { $server->subscribeEvent('beforeBind', array($this, 'check')); }

    public function check($path) {
        foreach (str_split(getenv('DAV_FORBIDDEN')) as $character) {
            if (strpos(basename($path), $character) === false) continue;
            throw new InvalidPath("\"$character\" is not allowed inside a file or folder name.");
        }
    }
}

$server = new Sabre\DAV\Server(new Sabre\DAV\FS\Directory(getenv('DAV_ROOT')));
$server->setBaseUri('/');
if (getenv('DAV_FORBIDDEN') !== false && getenv('DAV_FORBIDDEN') !== '') $server->addPlugin(new Names());
$server->exec();
