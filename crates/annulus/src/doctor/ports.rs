//! The ports that `annulus serve` would listen on.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpListener};

use super::DoctorFinding;

/// Whether a server can listen there. A port in use is no fault while a service answers.
pub fn finding(
    subject: &'static str,
    listen: IpAddr,
    port: u16,
    is_running: bool,
) -> DoctorFinding {
    let address = SocketAddr::new(listen, port);
    if port == 0 {
        return DoctorFinding::good(subject, format!("{listen}, any that is free"));
    }
    let Err(error) = TcpListener::bind(address) else {
        return DoctorFinding::good(subject, format!("{address} is free"));
    };
    match error.kind() {
        ErrorKind::AddrInUse if is_running => DoctorFinding::good(
            subject,
            format!("{address} is in use, and a service answers"),
        ),
        ErrorKind::AddrInUse => DoctorFinding::wrong(
            subject,
            format!("{address} is in use, and no service answers at --http"),
            "if it is your server, give its address and your login (--http, --ca, --user); else stop what listens \
             there (`ss -ltnp` names it), or choose another port",
        ),
        ErrorKind::AddrNotAvailable => DoctorFinding::wrong(
            subject,
            format!("{address} is no address of this machine"),
            "choose another with --listen",
        ),
        ErrorKind::PermissionDenied => DoctorFinding::wrong(
            subject,
            format!("{address} is not for this user"),
            "choose a port above 1023",
        ),
        _ => DoctorFinding::wrong(
            subject,
            format!("{address}: {error}"),
            "choose another address with --listen, or another port",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::FindingGrade;
    use super::*;

    #[test]
    fn a_port_in_use_is_wrong_unless_a_service_answers() {
        let loopback = IpAddr::from([127, 0, 0, 1]);
        let taken = TcpListener::bind((loopback, 0)).unwrap();
        let port = taken.local_addr().unwrap().port();
        let grade = |listen, port, is_running| finding("CQL port", listen, port, is_running).grade;
        assert_eq!(grade(loopback, port, false), FindingGrade::Wrong);
        assert_eq!(grade(loopback, port, true), FindingGrade::Good);
        assert_eq!(grade(loopback, 0, false), FindingGrade::Good);
        let elsewhere = IpAddr::from([192, 0, 2, 1]);
        assert_eq!(grade(elsewhere, port, false), FindingGrade::Wrong);
    }
}
